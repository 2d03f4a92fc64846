/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of one lcore. Reads as the schedule: each stage placed here gets one poll in each round.
 *
 * How it sleeps without losing a doorbell: after a while without work it announces that it will
 * sleep (clients then kick after a doorbell, peers wake it), polls everything once more, and sleeps
 * only if that round found nothing either. The announcement holds until a round finds work. Events
 * without a wake-up (frames from the wire, timers) wait for the timeout at most.
 *
 * After a longer while in which there is nothing to wait for, it rests: it sleeps for longer, and
 * the control thread wakes it after each of its own turns that did something.
 *
 * The eventfds are watched edge-triggered, those of clients through a set of their HCA, and never
 * read: each write wakes every lcore that watches, and none takes a wake-up away from another.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <rte_pause.h>
#include "base/log.h"
#include "base/monotonic.h"
#include "context/pacing.h"
#include "lcore/lcore_loop.h"
#include "link/link_port.h"
#include "pipeline/parking.h"
#include "requester/requester.h"
#include "responder/responder.h"
#include "send-queue/send_queue.h"

enum {
	CONTENDED_NS = 20000,	       /* if a yield took longer than this, another thread ran */
	CONTENDED_FOR_NS = 1000000000, /* checking again costs a time slice */
	UNCONTENDED_FOR_NS = 1000000,
};

enum {
	CLOCK_GRAIN_NS = 256, /* least step published to an engine that lcores share */
};

static int lcore_watch(struct lcore_loop *l, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = fd};

	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) && errno != EEXIST)
		return -errno;
	return 0;
}

int lcore_loop_init(struct lcore_loop *l)
{
	int error;

	l->sleep_ns = LOOP_SLEEP_NS_MIN;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (l->wake_fd < 0 || l->alarm_fd < 0 || l->epoll_fd < 0)
		return -errno;
	error = lcore_watch(l, l->wake_fd);
	return error ? error : lcore_watch(l, l->alarm_fd);
}

void lcore_loop_close(struct lcore_loop *l)
{
	close(l->wake_fd);
	close(l->alarm_fd);
	close(l->epoll_fd);
}

static void add_engine(struct engine **list, unsigned *count, struct engine *e)
{
	for (unsigned i = 0; i < *count; i++) {
		if (list[i] == e)
			return;
	}
	list[(*count)++] = e;
}

/* Counters that this lcore alone writes, for what it does on behalf of an HCA between polls. */
static void add_hca(struct lcore_loop *l, struct hca *h, struct counters *counters)
{
	for (unsigned i = 0; i < l->hca_count; i++) {
		if (l->hcas[i] == h)
			return;
	}
	l->counters[l->hca_count] = counters;
	l->hcas[l->hca_count++] = h;
}

int lcore_loop_place(struct lcore_loop *l, struct hca *h, struct engine *e, enum stage_id id,
		     int kicks)
{
	l->stages[l->stage_count++] = (struct placed_stage){.engine = e, .id = id};
	add_engine(l->engines, &l->engine_count, e);
	add_hca(l, h, stage_counters(e, id));
	if (id != STAGE_DOORBELL_WQE)
		return 0;
	add_engine(l->bells, &l->bell_count, e);
	dbp_set_cpu(e, l->cpu);
	dbp_set_asleep(e, l->announced); /* as those that are here already */
	return lcore_watch(l, kicks);
}

static bool is_engine_of(const struct engine *e, const struct hca *h)
{
	return e->peers == h->engines;
}

static void remove_engines(struct engine **list, unsigned *count, const struct hca *h)
{
	unsigned left = 0;

	for (unsigned i = 0; i < *count; i++)
		if (!is_engine_of(list[i], h))
			list[left++] = list[i];
	*count = left;
}

void lcore_loop_remove(struct lcore_loop *l, const struct hca *h)
{
	unsigned stages = 0, hcas = 0;

	for (unsigned i = 0; i < l->stage_count; i++)
		if (!is_engine_of(l->stages[i].engine, h))
			l->stages[stages++] = l->stages[i];
	for (unsigned i = 0; i < l->hca_count; i++) {
		if (l->hcas[i] == h)
			continue;
		l->counters[hcas] = l->counters[i];
		l->hcas[hcas++] = l->hcas[i];
	}
	l->stage_count = stages;
	l->hca_count = hcas;
	remove_engines(l->engines, &l->engine_count, h);
	remove_engines(l->bells, &l->bell_count, h);
}

void lcore_loop_wake(struct lcore_loop *l)
{
	static const uint64_t one = 1;

	if (__atomic_exchange_n(&l->asleep, LOOP_AWAKE, __ATOMIC_SEQ_CST) == LOOP_AWAKE)
		return;
	if (write(l->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		LOG(ERR, "wake-up of CPU %u: %s", l->cpu, strerror(errno));
}

bool lcore_loop_rests(const struct lcore_loop *l)
{
	return __atomic_load_n(&l->asleep, __ATOMIC_RELAXED) == LOOP_RESTS;
}

void lcore_loop_end_rest(struct lcore_loop *l)
{
	parking_fence();
	if (lcore_loop_rests(l))
		lcore_loop_wake(l);
}

/* Keeps the engine's time where it is. An lcore that lags behind others must not take back what
 * they have noted. */
static void let_stand(const struct lcore_loop *l, struct engine *e)
{
	uint64_t noted_ns = __atomic_load_n(&e->stood_ns, __ATOMIC_RELAXED);
	uint64_t stood_ns = l->now_ns - engine_now(e);

	while ((int64_t)(stood_ns - noted_ns) > 0 &&
	       !__atomic_compare_exchange_n(&e->stood_ns, &noted_ns, stood_ns, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* The time of an engine never goes back, whichever of its lcores publishes it. */
static void set_time(struct engine *e, uint64_t now_ns)
{
	uint64_t published_ns;

	if (e->one_lcore) {
		__atomic_store_n(&e->now_ns, now_ns, __ATOMIC_RELAXED);
		return;
	}
	published_ns = __atomic_load_n(&e->now_ns, __ATOMIC_RELAXED);
	while ((int64_t)(now_ns - published_ns) > CLOCK_GRAIN_NS &&
	       !__atomic_compare_exchange_n(&e->now_ns, &published_ns, now_ns, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void publish_time(struct lcore_loop *l)
{
	for (unsigned i = 0; i < l->engine_count; i++) {
		struct engine *e = l->engines[i];

		if (unlikely(__atomic_load_n(&e->watched, __ATOMIC_ACQUIRE) & WATCH_TIME_STANDS)) {
			let_stand(l, e);
			continue;
		}
		set_time(e, l->now_ns - __atomic_load_n(&e->stood_ns, __ATOMIC_RELAXED));
	}
}

/* One round over all stages. Returns elements handled. */
static unsigned poll_stages(struct lcore_loop *l)
{
	unsigned work = 0;

	for (unsigned i = 0; i < l->stage_count; i++)
		work += hca_poll_stage(l->stages[i].engine, l->stages[i].id);
	return work;
}

static void lcore_announce(struct lcore_loop *l, bool asleep)
{
	l->announced = asleep;
	__atomic_store_n(&l->asleep, asleep ? LOOP_ASLEEP : LOOP_AWAKE, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < l->bell_count; i++)
		dbp_set_asleep(l->bells[i], asleep);
	parking_fence();
}

/* How long it takes until a queue pair whose rate is limited may send again. */
static uint64_t paced_ns(const struct lcore_loop *l)
{
	uint64_t least_ns = UINT64_MAX;

	for (unsigned i = 0; i < l->stage_count; i++) {
		const struct engine *e = l->stages[i].engine;
		const struct pacer *p = e->stage[l->stages[i].id].pacer;
		uint64_t due_ns = p ? pacer_due_ns(p) : UINT64_MAX, now_ns = engine_now(e);

		if (due_ns != UINT64_MAX)
			least_ns = RTE_MIN(least_ns, due_ns > now_ns ? due_ns - now_ns : 0);
	}
	return least_ns;
}

/* May there soon be work that nobody wakes us for? */
static bool soon_due(const struct placed_stage *s)
{
	switch (s->id) {
	case STAGE_HEADER_PARSE:
		return __atomic_load_n(&s->engine->link->unannounced, __ATOMIC_RELAXED);
	case STAGE_REQUESTER_RECV:
		return requester_is_due_soon(s->engine);
	case STAGE_RESPONDER_EXEC:
		return responder_is_due_soon(s->engine);
	default:
		return false;
	}
}

static bool any_soon_due(const struct lcore_loop *l)
{
	for (unsigned i = 0; i < l->stage_count; i++)
		if (soon_due(&l->stages[i]))
			return true;
	return false;
}

/* Does none of its engines wait for a peer, on whichever lcore, and no event for room? Timers of
 * each engine stand until all have looked for arrivals: timer_control.c. */
static bool hca_rests(const struct hca *h)
{
	for (unsigned i = 0; i < h->config.engines; i++)
		if (!requester_rests(&h->engines[i]))
			return false;
	return completion_rests(&h->completion);
}

/* Has there been no work for so long, and is there so little to wait for, that only a doorbell, a
 * peer or the control thread will bring some? */
static bool may_rest(const struct lcore_loop *l)
{
	if (l->now_ns - l->idle_since_ns < LOOP_REST_AFTER_NS || any_soon_due(l))
		return false;
	for (unsigned i = 0; i < l->hca_count; i++)
		if (!hca_rests(l->hcas[i]))
			return false;
	return true;
}

/* How long to sleep if nobody wakes us: from sleep to sleep longer. */
static uint64_t longest_ns(struct lcore_loop *l, bool rests)
{
	const uint64_t most_ns = __atomic_load_n(&l->sleep_ns_max, __ATOMIC_RELAXED);
	uint64_t ns = l->sleep_ns;

	if (rests)
		return RTE_MAX(most_ns, (uint64_t)LOOP_REST_NS);
	l->sleep_ns = RTE_MIN(2 * l->sleep_ns, most_ns);
	return any_soon_due(l) ? ns : most_ns;
}

/* Sees that we wake within that time. Setting a timer makes a virtual machine's host work for longer
 * than all else that a sleep takes. So one that is set stays, although we were woken before, and ends
 * a later sleep, be it too early. */
static void set_alarm(struct lcore_loop *l, uint64_t ns)
{
	const struct itimerspec at = {.it_value = timespec_of(ns)};
	uint64_t end_ns = clock_now_ns(l->clock) + ns;

	if (l->alarm_ns && l->alarm_ns <= end_ns)
		return;
	l->alarm_ns = timerfd_settime(l->alarm_fd, 0, &at, NULL) ? 0 : end_ns;
}

static void sleep_once(struct lcore_loop *l, uint64_t due_ns, bool rests)
{
	struct epoll_event events[HCA_MAX + 2];
	int n;

	__atomic_store_n(&l->sleeps, l->sleeps + 1, __ATOMIC_RELAXED);
	l->slept_ns = RTE_MIN(longest_ns(l, rests), due_ns);
	set_alarm(l, l->slept_ns);
	/* A wake-up since the announcement has cleared `asleep` and written wake_fd: this returns
	 * at once. */
	n = epoll_wait(l->epoll_fd, events, HCA_MAX + 2, l->alarm_ns ? -1 : 1);
	for (int i = 0; i < n; i++)
		if (events[i].data.fd == l->alarm_fd)
			l->alarm_ns = 0;
	__atomic_store_n(&l->asleep, LOOP_ASLEEP, __ATOMIC_RELAXED);
	parking_fence();
}

/* The round that found nothing had been announced. So has the next, if that one is to rest. */
static void sleep_or_rest(struct lcore_loop *l)
{
	const uint64_t due_ns = paced_ns(l);
	const bool rests = may_rest(l);

	if (due_ns < LOOP_SLEEP_NS_MIN) {
		rte_pause();
	} else if (rests && !lcore_loop_rests(l)) {
		__atomic_store_n(&l->asleep, LOOP_RESTS, __ATOMIC_RELAXED);
		parking_fence(); /* and look once more */
	} else {
		sleep_once(l, due_ns, rests);
	}
}

static enum dbp_crowd crowd(const struct lcore_loop *l)
{
	enum dbp_crowd most = CROWD_NONE, one;

	for (unsigned i = 0; i < l->bell_count; i++) {
		one = dbp_crowd(l->bells[i], l->cpu);
		most = RTE_MAX(most, one);
	}
	return most;
}

/*
 * Does another thread want our CPU? A client's claim alone must not stop the lcore from spinning
 * for all others: if nothing runs while we yield, the claim is ignored for a while. A client that
 * does run has its share of the CPU anyway.
 */
static bool contended(struct lcore_loop *l)
{
	uint64_t before_ns;

	if (l->now_ns < l->probe_ns)
		return l->contended;
	before_ns = clock_now_ns(l->clock);
	sched_yield();
	l->contended = clock_now_ns(l->clock) - before_ns > CONTENDED_NS;
	l->probe_ns = l->now_ns + (l->contended ? CONTENDED_FOR_NS : UNCONTENDED_FOR_NS);
	return l->contended;
}

/*
 * With fewer CPUs than pollers, our spinning takes the time that a client needs to post the next
 * work. So yield to a client on our CPU that yields, too, and sleep at once if one spins there: then
 * only the wake-up by a doorbell preempts it.
 */
static bool gives_way(struct lcore_loop *l)
{
	switch (crowd(l)) {
	case CROWD_YIELDS:
		sched_yield();
		return false;
	case CROWD_SPINS:
		return contended(l);
	default:
		return false;
	}
}

/* The round found nothing. */
static void lcore_idle(struct lcore_loop *l)
{
	/* Without a stage there is nothing to be quick for. */
	const bool adaptive = __atomic_load_n(&l->adaptive, __ATOMIC_RELAXED) || !l->stage_count;
	const uint64_t spin_ns = __atomic_load_n(&l->spin_ns, __ATOMIC_RELAXED);

	if (!l->idle_since_ns)
		l->idle_since_ns = l->now_ns;
	if (!adaptive || (l->now_ns - l->idle_since_ns < spin_ns && !gives_way(l))) {
		rte_pause();
	} else if (!l->announced) {
		lcore_announce(l, true); /* and look once more */
	} else {
		sleep_or_rest(l);
	}
}

/* The round found work, which may now be in rings of stages on other lcores. */
static void busy(struct lcore_loop *l)
{
	l->idle_since_ns = 0;
	l->sleep_ns = LOOP_SLEEP_NS_MIN;
	if (l->announced)
		lcore_announce(l, false);
	if (!l->peer_count)
		return;
	parking_fence();
	for (unsigned i = 0; i < l->peer_count; i++) {
		if (__atomic_load_n(&l->peers[i]->asleep, __ATOMIC_RELAXED))
			lcore_loop_wake(l->peers[i]);
	}
}

/* Reports the sleep that we asked for, as far as it happened. The scheduler may have made it
 * longer, or preempted us during a round: the modules infer that from the time not reported as
 * sleep. */
static void publish_sleep(struct lcore_loop *l, uint64_t passed_ns)
{
	uint64_t slept_ns = RTE_MIN(passed_ns, l->slept_ns);

	l->slept_ns = 0;
	for (unsigned i = 0; i < l->engine_count && slept_ns; i++)
		__atomic_fetch_add(&l->engines[i]->slept_ns, slept_ns, __ATOMIC_RELAXED);
}

static void begin_round(struct lcore_loop *l, bool was_busy)
{
	uint64_t now_ns = clock_now_ns(l->clock), passed_ns = now_ns - l->now_ns;

	if (was_busy)
		__atomic_store_n(&l->busy_ns, l->busy_ns + passed_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&l->rounds, l->rounds + 1, __ATOMIC_RELAXED);
	l->now_ns = now_ns;
	publish_sleep(l, passed_ns);
	publish_time(l);
}

uint32_t lcore_loop_busy_permille(const struct lcore_loop *l, uint64_t *sampled_ns,
				  uint64_t passed_ns)
{
	uint64_t busy_ns = __atomic_load_n(&l->busy_ns, __ATOMIC_RELAXED) - *sampled_ns;

	busy_ns = RTE_MIN(busy_ns, passed_ns);
	*sampled_ns += busy_ns;
	return passed_ns ? busy_ns * 1000 / passed_ns : 0;
}

int lcore_loop_run(void *loop)
{
	struct lcore_loop *l = loop;
	unsigned work = 0;

	/* EAL's own hand-over, there and back, would do, but a race detector cannot see into
	 * EAL. */
	while (__atomic_load_n(&l->handed, __ATOMIC_ACQUIRE) != LOOP_READY)
		rte_pause();
	__atomic_store_n(&l->tid, rte_gettid(), __ATOMIC_RELAXED);
	rte_rcu_qsbr_thread_register(l->rcu, l->thread);
	rte_rcu_qsbr_thread_online(l->rcu, l->thread);
	l->now_ns = clock_now_ns(l->clock);
	while (!__atomic_load_n(l->stop, __ATOMIC_RELAXED)) {
		begin_round(l, work > 0);
		work = poll_stages(l);
		for (unsigned i = 0; i < l->hca_count; i++)
			completion_round(&l->hcas[i]->completion, l->counters[i]);
		rte_rcu_qsbr_quiescent(l->rcu, l->thread);
		if (work)
			busy(l);
		else
			lcore_idle(l);
	}
	rte_rcu_qsbr_thread_offline(l->rcu, l->thread);
	rte_rcu_qsbr_thread_unregister(l->rcu, l->thread);
	__atomic_store_n(&l->handed, LOOP_ENDED, __ATOMIC_RELEASE);
	return 0;
}
