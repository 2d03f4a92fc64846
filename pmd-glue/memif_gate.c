/* SPDX-License-Identifier: BSD-3-Clause */
/* The gate between EAL's interrupt thread and the lcores that poll memif; see memif_gate.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <rte_alarm.h>

#include "base/log.h"
#include "memif_gate.h"
#include "port_internal.h"

enum { GATE_PATIENCE_S = 2 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t visits; /* times the interrupt thread entered the callback */
	bool inside;	 /* it is in there */
	bool let_out;	 /* it may go for one window */
	bool abolished;	 /* it may go and not come back */
	struct port *port[PORTS_MAX];
	unsigned int n_ports;
	uint64_t next_ms;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Interrupt thread. */
static void gate_callback(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&gate.lock);
	gate.inside = true;
	gate.visits++;
	pthread_cond_broadcast(&gate.changed);
	while (!gate.let_out && !gate.abolished)
		pthread_cond_wait(&gate.changed, &gate.lock);
	gate.inside = false;
	gate.let_out = false;
	if (!gate.abolished)
		rte_eal_alarm_set(MEMIF_WINDOW_US, gate_callback, NULL);
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

/* Waits, with gate.lock held, until the interrupt thread is inside for the nth time; false: late.
 */
static bool wait_for_visit(uint64_t n)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += GATE_PATIENCE_S;
	while (gate.visits < n) {
		if (pthread_cond_timedwait(&gate.changed, &gate.lock, &end) != 0)
			return gate.visits >= n;
	}
	return true;
}

static int shut(void)
{
	uint64_t next = gate.visits + 1; /* nobody is inside */
	bool done;

	gate.abolished = false;
	gate.let_out = false;
	if (rte_eal_alarm_set(1, gate_callback, NULL) != 0)
		return -ENOTSUP;
	pthread_mutex_lock(&gate.lock);
	done = wait_for_visit(next);
	pthread_mutex_unlock(&gate.lock);
	return done ? 0 : -ENOTSUP;
}

static void abolish(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.abolished = true;
	pthread_cond_broadcast(&gate.changed);
	while (gate.inside)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
	rte_eal_alarm_cancel(gate_callback, NULL);
}

int memif_gate_join(struct port *port)
{
	int error = gate.n_ports == 0 ? shut() : 0;

	if (error) {
		LOG(ERR, "port %s: EAL's interrupt thread does not answer", port->config.name);
		abolish();
		return error;
	}
	gate.port[gate.n_ports++] = port;
	return 0;
}

void memif_gate_leave(struct port *port)
{
	for (unsigned int i = 0; i < gate.n_ports; i++) {
		if (gate.port[i] != port)
			continue;
		gate.port[i] = gate.port[--gate.n_ports];
		if (gate.n_ports == 0)
			abolish();
		return;
	}
}

void memif_keep_out(struct port *port)
{
	for (unsigned int i = 0; i < port->config.queues; i++) {
		struct port_queue *q = &port->queue[i];

		/* Say so first: a lcore that polls in a tight loop would win each race for the
		 * lock. */
		__atomic_store_n(&q->keep_out, true, __ATOMIC_RELAXED);
		while (!rte_spinlock_trylock(&q->poll_lock))
			sched_yield();
	}
}

void memif_let_in(struct port *port)
{
	for (unsigned int i = 0; i < port->config.queues; i++) {
		__atomic_store_n(&port->queue[i].keep_out, false, __ATOMIC_RELAXED);
		rte_spinlock_unlock(&port->queue[i].poll_lock);
	}
}

static void open_window(void)
{
	uint64_t next;

	for (unsigned int i = 0; i < gate.n_ports; i++)
		memif_keep_out(gate.port[i]);
	pthread_mutex_lock(&gate.lock);
	next = gate.visits + 1;
	gate.let_out = true;
	pthread_cond_broadcast(&gate.changed);
	/* However long it takes: as long as that thread is out, nobody else may be in. */
	while (!wait_for_visit(next))
		LOG(WARNING, "EAL's interrupt thread is slow; memif ports wait for it");
	pthread_mutex_unlock(&gate.lock);
	for (unsigned int i = 0; i < gate.n_ports; i++)
		memif_let_in(gate.port[i]);
}

void memif_gate_poll(uint64_t now_ms)
{
	bool all_up = true;

	if (now_ms < gate.next_ms)
		return;
	for (unsigned int i = 0; i < gate.n_ports; i++)
		all_up &= port_link_is_up(gate.port[i]) || !gate.port[i]->started;
	gate.next_ms = now_ms + (all_up ? MEMIF_PERIOD_UP_MS : MEMIF_PERIOD_DOWN_MS);
	open_window();
}
