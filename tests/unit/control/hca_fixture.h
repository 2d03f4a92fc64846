/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_FIXTURE_H
#define HCA_FIXTURE_H
/*
 * A whole daemon in a test program: one real HCA whose link leads back to itself, the CEU, the
 * control socket; one thread polls the pipeline, another the socket. Port facts are made up. No
 * root, no hugepages.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/shares.h"
#include "command/ceu.h"
#include "control/control.h"
#include "hca/hca.h"

struct fixture {
	struct shares *shares;
	struct hca *hca;
	struct ceu *ceu;
	struct control *control;
	char path[64];	    /* of the socket */
	int kicks;	    /* control_device.kicks */
	int resolve_again;  /* how often resolve answers -EAGAIN before it knows; atomic */
	int resolve_result; /* what it answers then */
	bool would_ask;	    /* what would_ask answers; atomic */
	bool port_down_vlan;
	int join_result;    /* what join answers; atomic */
	int capture_result; /* what capture answers; atomic */
	void *captured;	    /* the memory of the capture; NULL: none; atomic */
	bool may_stop;	    /* what may_stop answers; atomic */
	uint32_t
		joined; /* by how much more often join was called with success than leave; atomic */
};

/* How much there is of something that clients share. */
struct fixture_total {
	enum share row;
	uint64_t total;
};

/* The connection manager of the daemons that are started: control_config.cm_adopt. */
extern int (*fixture_cm_adopt)(void *ctx, int fd);

/* 2: there is a device hca1, too. It is the same HCA, so only one of them at a time can have clients. */
extern unsigned int fixture_devices;
/* Atomic: set while the serving thread does nothing else, as the setting "busy" makes it; it goes on
 * when the test clears it. */
extern int fixture_busy;

/* control_config.hello_timeout_ms of the daemons that are started. */
extern unsigned int fixture_hello_ms;

/* How many engines the daemons that are started have. */
extern unsigned int fixture_engines;

/* The NUMA node of the engines that are started; at first any. */
extern int fixture_node;

/* EAL is started once for each program (TEST_GROUP). */
/* totals: those of shares.def that differ, the last one 0; may be NULL. Exits on failure. */
void fixture_start(struct fixture *f, const struct fixture_total *totals, bool poll_pipeline);
void fixture_stop(struct fixture *f);
/* Stops serving the socket as if the daemon had been killed: all connections end. */
void fixture_kill_control(struct fixture *f);
/* Waits until the number of clients is n; false after two seconds. */
bool fixture_wait_clients(struct fixture *f, unsigned int n);
/* Open descriptors of this process. */
unsigned int fixture_descriptors(void);
/* CPU time of the cheapest turn that has served a request since this was called last. */
uint64_t fixture_cheapest_turn_ns(void);
/* Turns of the control thread so far. */
uint64_t fixture_turns(void);
/* No turn begins between the two. */
void fixture_hold(void);
void fixture_resume(void);
uint64_t fixture_counter(struct fixture *f, enum counter which);

#endif
