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
	/* under lock */
	bool inside;	    /* the interrupt thread is in the callback */
	uint64_t visits;    /* times it entered */
	bool may_leave;	    /* it may leave for one window */
	bool abolished;	    /* it may leave for good */
	uint64_t window_us; /* length of that window */
	/* control thread only */
	bool open;	     /* a window is open: the data path is excluded */
	uint64_t last_visit; /* the visit that ended it */
	uint64_t next_ms;    /* when to open the next one */
	struct port *port[PORTS_MAX];
	unsigned int n_ports;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static __thread bool is_interrupt_thread;

bool memif_gate_in_interrupt(void)
{
	return is_interrupt_thread;
}

/* Interrupt thread. */
static void gate_callback(void *arg)
{
	(void)arg;
	is_interrupt_thread = true;
	pthread_mutex_lock(&gate.lock);
	gate.inside = true;
	gate.visits++;
	pthread_cond_broadcast(&gate.changed);
	while (!gate.may_leave && !gate.abolished)
		pthread_cond_wait(&gate.changed, &gate.lock);
	gate.inside = false;
	gate.may_leave = false;
	if (!gate.abolished)
		rte_eal_alarm_set(gate.window_us, gate_callback, NULL);
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
	uint64_t next = gate.visits + 1; /* the interrupt thread is not inside */
	bool done;

	gate.abolished = false;
	gate.may_leave = false;
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
	int error = 0;

	memif_gate_shut();
	if (gate.n_ports == 0)
		error = shut();

	if (error) {
		LOG(ERR, "port %s: EAL's interrupt thread does not respond", port->config.name);
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
		memif_gate_shut();
		gate.port[i] = gate.port[--gate.n_ports];
		if (gate.n_ports == 0)
			abolish();
		return;
	}
}

void memif_exclude(struct port *port)
{
	for (unsigned int i = 0; i < port->config.queues; i++) {
		struct port_queue *q = &port->queue[i];

		/* Say so first: a lcore that polls in a tight loop would win each race for the
		 * lock. */
		__atomic_store_n(&q->excluded, true, __ATOMIC_RELAXED);
		while (!rte_spinlock_trylock(&q->poll_lock))
			sched_yield();
	}
}

void memif_admit(struct port *port)
{
	for (unsigned int i = 0; i < port->config.queues; i++) {
		__atomic_store_n(&port->queue[i].excluded, port->eth_waiting, __ATOMIC_RELAXED);
		rte_spinlock_unlock(&port->queue[i].poll_lock);
	}
}

static void open_window(void)
{
	bool any_up = false;

	for (unsigned int i = 0; i < gate.n_ports; i++) {
		any_up |= port_link_is_up(gate.port[i]);
		memif_exclude(gate.port[i]);
	}
	pthread_mutex_lock(&gate.lock);
	gate.window_us = any_up ? MEMIF_WINDOW_UP_US : MEMIF_WINDOW_DOWN_US;
	gate.last_visit = gate.visits + 1;
	gate.may_leave = true;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
	gate.open = true;
}

/* The interrupt thread is inside again. */
static void end_window(uint64_t now_ms)
{
	bool any_up = false, all_up = true;

	for (unsigned int i = 0; i < gate.n_ports; i++) {
		bool up = port_link_is_up(gate.port[i]);

		any_up |= up;
		all_up &= up || !gate.port[i]->started;
		memif_admit(gate.port[i]);
	}
	gate.next_ms = now_ms;
	if (all_up)
		gate.next_ms += MEMIF_PERIOD_UP_MS;
	else if (any_up)
		gate.next_ms += MEMIF_PERIOD_MIXED_MS;
	gate.open = false;
}

bool memif_gate_poll(uint64_t now_ms)
{
	bool over;

	if (!gate.open && now_ms < gate.next_ms)
		return true;
	if (!gate.open) {
		open_window();
		return false;
	}
	pthread_mutex_lock(&gate.lock);
	over = gate.visits >= gate.last_visit;
	pthread_mutex_unlock(&gate.lock);
	if (over)
		end_window(now_ms);
	return over;
}

void memif_gate_shut(void)
{
	if (!gate.open)
		return;
	pthread_mutex_lock(&gate.lock);
	/* However long it takes: while that thread is out, no one else may touch memif. */
	while (!wait_for_visit(gate.last_visit))
		LOG(WARNING, "EAL's interrupt thread is slow; memif ports wait for it");
	pthread_mutex_unlock(&gate.lock);
	end_window(port_now_ms());
}
