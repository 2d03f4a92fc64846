/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates, launches and ends the loops of the lcores (lcores.h). The loop itself is in
 * lcore_loop.c. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <rte_pause.h>
#include "base/log.h"
#include "lcores.h"

enum {
	SAMPLE_NS = 1000000000,	 /* interval over which busy shares are measured */
	QUIESCE_SPIN_NS = 20000, /* longer than an lcore takes to wake up */
	QUIESCE_SLEEP_US = 20,
};

static int make_rcu(struct lcores *l)
{
	l->rcu = rte_zmalloc("rcu", rte_rcu_qsbr_get_memsize(LCORES_MAX), RTE_CACHE_LINE_SIZE);
	return l->rcu ? rte_rcu_qsbr_init(l->rcu, LCORES_MAX) : -ENOMEM;
}

static int allocate_loops(struct lcores *l, const struct config_cpus *cpus)
{
	size_t bytes = cpus->count * sizeof(struct lcore_loop);

	l->loops = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (!l->loops)
		return -ENOMEM;
	memset(l->loops, 0, bytes);
	l->count = cpus->count;
	for (unsigned i = 0; i < l->count; i++) {
		l->loops[i].cpu = cpus->cpu[i];
		l->loops[i].wake_fd = l->loops[i].epoll_fd = l->loops[i].alarm_fd = -1;
	}
	return 0;
}

void lcores_set_idle(struct lcores *l, const struct daemon_config *c)
{
	for (unsigned i = 0; i < l->count; i++) {
		struct lcore_loop *loop = &l->loops[i];

		__atomic_store_n(&loop->adaptive, c->poll == CONFIG_POLL_ADAPTIVE,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&loop->spin_ns, c->idle_spin_us * 1000ull, __ATOMIC_RELAXED);
		__atomic_store_n(&loop->sleep_ns_max, c->idle_sleep_us * 1000ull, __ATOMIC_RELAXED);
	}
}

static int init_loop(struct lcores *l, unsigned i)
{
	struct lcore_loop *loop = &l->loops[i];

	loop->lcore = i + 1;
	loop->thread = i;
	loop->clock = &l->clock;
	loop->rcu = l->rcu;
	loop->stop = &l->stop;
	return lcore_loop_init(loop);
}

int lcores_create(struct lcores *l, const struct config_cpus *cpus, const struct daemon_config *c)
{
	int ret;

	clock_start(&l->clock);
	ret = make_rcu(l);
	if (!ret)
		ret = allocate_loops(l, cpus);
	for (unsigned i = 0; i < l->count && !ret; i++)
		ret = init_loop(l, i);
	lcores_set_idle(l, c);
	if (ret)
		LOG(ERR, "lcores: %s", strerror(-ret));
	return ret;
}

static int launch(struct lcore_loop *loop)
{
	__atomic_store_n(&loop->handed, LOOP_READY, __ATOMIC_RELEASE);
	return rte_eal_remote_launch(lcore_loop_run, loop, loop->lcore);
}

int lcores_launch(struct lcores *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		struct lcore_loop *loop = &l->loops[i];
		int ret = launch(loop);

		if (ret) {
			LOG(ERR, "CPU %u: cannot start the lcore: %s", loop->cpu, strerror(-ret));
			return ret;
		}
		l->running++;
		LOG(INFO, "CPU %u: %u stages of %u engines, %s", loop->cpu, loop->stage_count,
		    loop->engine_count, loop->adaptive ? "adaptive" : "busy polling");
	}
	return 0;
}

static void lcores_wake_all(struct lcores *l)
{
	for (unsigned i = 0; i < l->running; i++)
		lcore_loop_wake(&l->loops[i]);
}

void lcores_destroy(struct lcores *l)
{
	for (unsigned i = 0; i < l->count; i++)
		lcore_loop_close(&l->loops[i]);
	free(l->loops);
	rte_free(l->rcu);
	*l = (struct lcores){.count = 0};
}

void lcores_pause(struct lcores *l)
{
	__atomic_store_n(&l->stop, 1, __ATOMIC_SEQ_CST);
	lcores_wake_all(l);
	for (unsigned i = 0; i < l->running; i++) {
		rte_eal_wait_lcore(l->loops[i].lcore);
		if (__atomic_load_n(&l->loops[i].handed, __ATOMIC_ACQUIRE) != LOOP_ENDED)
			LOG(ERR, "CPU %u: the lcore did not return", l->loops[i].cpu);
	}
}

void lcores_stop(struct lcores *l)
{
	lcores_pause(l);
	l->running = 0;
}

void lcores_resume(struct lcores *l)
{
	__atomic_store_n(&l->stop, 0, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < l->running; i++)
		launch(&l->loops[i]); /* it waits to be */
}

/* Does an lcore need the CPU that we run on? */
static bool in_the_way(const struct lcores *l)
{
	unsigned cpu = (unsigned)sched_getcpu();

	for (unsigned i = 0; i < l->running; i++) {
		if (l->loops[i].cpu == cpu)
			return true;
	}
	return false;
}

/* Yields if an lcore needs our CPU: a nap would end only with a timer. Naps where a busy thread
 * would run instead. */
static void wait_quiescent(struct lcores *l)
{
	uint64_t token = rte_rcu_qsbr_start(l->rcu), begun_ns, now_ns, before_ns;
	bool yields;

	lcores_wake_all(l);
	begun_ns = now_ns = clock_now_ns(&l->clock);
	look_begin(&l->look, begun_ns);
	yields = look_pays(&l->look, begun_ns);
	while (!rte_rcu_qsbr_check(l->rcu, token, false)) {
		if (now_ns - begun_ns < QUIESCE_SPIN_NS && !in_the_way(l))
			rte_pause();
		else if (yields)
			sched_yield();
		else
			usleep(QUIESCE_SLEEP_US);
		before_ns = now_ns;
		now_ns = clock_now_ns(&l->clock);
		yields = yields && look_again(&l->look, before_ns, now_ns);
	}
	look_end(&l->look, now_ns);
}

void lcores_quiesce(void *ctx)
{
	struct lcores *l = ctx;

	/* Wait for the end of each lcore's current round, and of the next. */
	wait_quiescent(l);
	wait_quiescent(l);
}

bool lcores_rest(const struct lcores *l)
{
	for (unsigned i = 0; i < l->running; i++)
		if (!lcore_loop_rests(&l->loops[i]))
			return false;
	return true;
}

void lcores_end_rest(struct lcores *l)
{
	for (unsigned i = 0; i < l->running; i++)
		lcore_loop_end_rest(&l->loops[i]);
}

bool lcores_need_this_cpu(const struct lcores *l)
{
	unsigned cpu = (unsigned)sched_getcpu();

	for (unsigned i = 0; i < l->running; i++) {
		if (l->loops[i].cpu == cpu &&
		    !__atomic_load_n(&l->loops[i].asleep, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void lcores_sample_busy(struct lcores *l)
{
	uint64_t now_ns = clock_now_ns(&l->clock), passed_ns = now_ns - l->sampled_ns;

	if (passed_ns < SAMPLE_NS)
		return;
	for (unsigned i = 0; i < l->count; i++)
		l->busy_permille[i] =
			lcore_loop_busy_permille(&l->loops[i], &l->sampled_busy_ns[i], passed_ns);
	l->sampled_ns = now_ns;
}
