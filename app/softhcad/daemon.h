/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_H
#define DAEMON_H
/*
 * All that a running daemon consists of, in the order in which it is made. The control thread owns
 * it. Telemetry reads it from threads of its own and takes `lock` for that; the control thread
 * holds it whenever it does not wait.
 */
#include <pthread.h>
#include <stdint.h>
#include "lcore/clock.h"
#include "cm-thread/cm_thread.h"
#include "command/ceu.h"
#include "config/config.h"
#include "control/control.h"
#include "hca/hca.h"
#include "lcore/lcore_loop.h"
#include "pmd-glue/port.h"

struct daemon;

/* One HCA with its port. */
struct device {
	struct daemon *daemon;
	const struct hca_section *section;
	struct port *port;
	struct hca *hca;
	struct ceu *ceu;
	int kick_fd; /* the control socket writes it when a client rings although we sleep; -1: not
			made */
	bool link_up;
};

/* Buffers of the engines on one node. */
struct node_pools {
	int node;
	unsigned engines;
	bool first; /* its pools have plain names */
	struct rte_mempool *packets, *descriptors, *clones;
};

struct daemon {
	struct config config;
	struct clock clock;
	uint32_t memory_mib; /* reserved without hugepages; 0: hugepages are used */
	struct node_pools pools[LCORES_MAX];
	unsigned pool_sets;
	struct device devices[HCA_MAX];
	unsigned device_count;
	struct control *control;
	struct cm_thread *cm; /* NULL: there is no connection manager */
	struct rte_rcu_qsbr *rcu;
	struct lcore_loop *loops; /* one for each CPU in use, index = EAL lcore - 1; fds are -1
				     before daemon_start() */
	unsigned loop_count;
	unsigned running; /* loops that have been launched */
	uint32_t stop;	  /* atomic: tells the loops to end */
	bool shown;	  /* sysfs_tree_make() was called */
	pthread_mutex_t lock;
	/* busy share of each loop over the last second, in 1/1000; control thread writes under the
	 * lock */
	uint32_t busy_permille[LCORES_MAX];
	uint64_t sampled_busy_ns[LCORES_MAX], sampled_ns;
};

/* Does somebody listen on that control socket already? Asked before EAL is started, for the sake of
 * the message. */
bool daemon_is_running(const char *socket_path);

/*
 * Makes everything but EAL, which is up, and starts the lcores. On failure the log says why and
 * nothing remains. 0 or -errno. Control thread.
 */
int daemon_start(struct daemon *d);

/* Stops and frees everything in the reverse order. Control thread. */
void daemon_stop(struct daemon *d);

/* Serves the control socket, the ports and what is due, until *stop_requested is set by a signal.
 */
void daemon_run(struct daemon *d, const volatile int *stop_requested);

/* Waits until every lcore has finished the round it was in, and another one. ctx: struct daemon.
 * Control thread. */
void daemon_quiesce(void *ctx);

/* device.c: port, HCA and CEU of one [hca NAME] section. 0 or -errno, logged. */
int device_create(struct device *v, struct daemon *d, const struct hca_section *section);
void device_destroy(struct device *v);
/* Takes the link as it is: only what changes from now on is an event. Once all devices are made
 * (the other end of a ring is one), before a client is let in. */
void device_settle(struct device *v);
/* What the control socket is told about it. */
void device_describe(struct device *v, struct control_device *out);
/* EUI-64 of its MAC address. */
uint64_t device_guid(struct device *v);
/* The port's turn: about every millisecond. */
void device_poll(struct device *v, unsigned index);

/*
 * placement.c: which CPU each stage runs on.
 * placement_cpus() lists the CPUs that the configuration needs, each once; it fills in stages that
 * have no place, near their ports, and the NUMA nodes of ports (as read below `sysfs`), HCAs and
 * engines. 0; -EINVAL (a CPU that this process may not use; logged to stderr).
 */
int placement_cpus(struct config *c, const char *sysfs, struct config_cpus *cpus);
/* Gives the loops their stages and their peers. 0 or -errno. */
int placement_apply(struct daemon *d);

/* pools.c: makes the buffers. 0; -ENOMEM, logged. */
int pools_make(struct daemon *d);
/* The set of that node; the first one where it has none of its own. */
const struct node_pools *pools_near(const struct daemon *d, int node);
void pools_free(struct daemon *d);

/* cm_start.c: starts the connection manager, if there shall be one, and serves the control socket
 * meanwhile, which is up. 0 or -errno, logged. */
int cm_start(struct daemon *d);
/* control_config.cm_adopt; ctx: struct daemon. */
int cm_adopt(void *ctx, int fd);

/* telemetry.c: registers /softhca/... with DPDK's telemetry. 0 or -errno. */
int telemetry_start(struct daemon *d);
/* From here on the commands answer nothing. */
void telemetry_stop(void);

/* eal.c: starts EAL as the configuration says; cpus: one lcore each, numbered from 1. 0 or -errno,
 * logged. */
int eal_start(struct daemon *d, const struct config_cpus *cpus);
/* The name of the kind of packet pools that ThreadSanitizer sees through. In its builds only. */
const char *visible_pools(void);
/* Ends EAL and removes its runtime directory. */
void eal_stop(const struct daemon *d);

/* notify.c: tells the service manager ("READY=1", "STOPPING=1") through $NOTIFY_SOCKET, if there is
 * one. Never fails. */
void notify_service(const char *state);

#endif
