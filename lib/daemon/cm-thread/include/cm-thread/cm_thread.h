/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_THREAD_H
#define CM_THREAD_H
/*
 * The thread of the connection manager: QP 1 of each device (cm_port.h) on one side, the programs'
 * channels (cm/service.h) on the other.
 *
 * Locks: the thread holds its own lock except in poll(); holding it, it briefly takes the daemon's
 * (to query ports), and waits for the control socket. So no holder of the daemon's lock, and never
 * the control thread, may wait for this one: cm_thread_try_enter().
 */
#include <pthread.h>
#include "cm/service.h"
#include "cm-thread/cm_port.h"
#include "control/control.h"

struct cm_thread;

/* A device of the daemon. */
struct cm_thread_device {
	struct control_device control; /* its functions are called with `lock` held */
	/* cm_device.source, called with `lock` held; ctx: control.ctx. */
	int (*source)(void *ctx, const uint8_t dgid[16]);
};

struct cm_thread_config {
	pthread_mutex_t *lock;			/* the daemon's */
	const struct cm_thread_device *devices; /* copied */
	unsigned int device_count;
	struct shares *shares; /* what programs share; NULL: creates its own table */
	/* A connected control socket; -errno. Called in cm_thread_start() and cm_thread_add(). */
	int (*connect)(void *ctx);
	/* control_gives_credits() and control_peer_gives_no_credits(), called with `lock` held.
	 * device: its index in `devices`. */
	bool (*gives_credits)(void *ctx, unsigned int device, uint32_t user, uint32_t qpn);
	void (*peer_gives_no_credits)(void *ctx, unsigned int device, uint32_t user, uint32_t qpn);
	void *ctx;
};

/*
 * Starts it. It then opens the devices, for which the caller must serve the control socket until
 * cm_thread_state() changes. 0, or -errno: nothing has been started.
 */
int cm_thread_start(const struct cm_thread_config *config, struct cm_thread **out);

enum cm_thread_state {
	CM_THREAD_STARTING,
	CM_THREAD_RUNS,
	CM_THREAD_FAILED, /* logged; it can only be stopped */
};
/* Any thread. */
enum cm_thread_state cm_thread_state(const struct cm_thread *t);
/* For a watchdog: its kernel ID, once it is CM_THREAD_RUNS, and *turns, atomic, which then rises
 * each second at least. */
int cm_thread_pulse(const struct cm_thread *t, const uint64_t **turns);

/* Passes it the socket of a new channel. Never blocks. 0; -EUSERS: it has not taken the last ones
 * yet; -ENODEV: it has failed; fd then stays the caller's. Control thread. */
int cm_thread_adopt(struct cm_thread *t, int fd);

/* The devices' GIDs have changed. NULL is allowed. Control thread. */
void cm_thread_moved(struct cm_thread *t);

/*
 * Adds device i (below HCA_MAX; unused, or removed before) as cm_thread_start() adds those of its
 * configuration, with the same `connect`. 0; -ENODEV: the thread has failed; -errno of `connect`.
 * The control socket must be served until cm_thread_added() is no longer -EAGAIN: 0 then, or -EIO
 * (logged), after which cm_thread_remove() is still due. NULL is allowed. Control thread.
 */
int cm_thread_add(struct cm_thread *t, unsigned int i, const struct cm_thread_device *device);
int cm_thread_added(const struct cm_thread *t, unsigned int i);

/*
 * Device i is being removed: the thread tells the programs that use it and the peers of their
 * connections, and closes its QP 1, for which the control socket must be served. May be called
 * again. True: it has, and no longer uses the device; also if there is no such thread. Control
 * thread.
 */
bool cm_thread_remove(struct cm_thread *t, unsigned int i);

/* Ends the thread, its channels and its QPs 1. NULL is allowed. The control socket and the HCAs
 * must still exist, but need not be served. Control thread, without the daemon's lock. */
void cm_thread_stop(struct cm_thread *t);
/* Frees a stopped thread. NULL is allowed. */
void cm_thread_destroy(struct cm_thread *t);

/* For views: locks the service and the ports until cm_thread_leave(); *service NULL: there is none
 * (any more). False: they are locked already; the thread then leaves a millisecond between its
 * turns for some time, so that a next try soon succeeds. */
bool cm_thread_try_enter(struct cm_thread *t, const struct cm_service **service);
void cm_thread_leave(struct cm_thread *t);
/* Between the two: the counters of port i < number of devices; NULL: it has been removed. */
const struct cm_port_counters *cm_thread_port(const struct cm_thread *t, unsigned int i,
					      const char **device);

#endif
