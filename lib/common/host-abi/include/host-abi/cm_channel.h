/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_CM_CHANNEL_H
#define HOST_ABI_CM_CHANNEL_H
/*
 * The channel behind an open /dev/infiniband/rdma_cm. A connection to the control socket whose
 * first request is CONTROL_OPEN_CM becomes one with the reply: lib/host/preload gives its
 * descriptor to the program, which polls and closes it like the device's.
 *
 * A command is one message: struct rdma_ucm_cmd_hdr and the body that the program wrote
 * (SET_OPTION: followed by the option's bytes), with one descriptor, a SOCK_SEQPACKET socket. The
 * reply goes to that socket: struct cm_channel_reply and the bytes for the response pointer. The
 * channel itself carries only one byte back, sent when an event arrives and none was pending, so
 * that the descriptor is readable while events are pending. The first reply to a command of the
 * channel after its last event was taken, usually the reply that took it, has CM_CHANNEL_QUIET: the
 * library then receives that byte, without waiting.
 *
 * Every process that has the descriptor may use the channel's identifiers. They end with its last
 * copy. GET_EVENT without an event is answered -EAGAIN; the library waits. It also handles the
 * daemon's death: replies tell it which identifiers are bound to a device, and to which one an
 * event belongs.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <rdma/rdma_user_cm.h>

enum {
	CM_CHANNEL_BYTES_MAX = 1024, /* of a command or a reply */
	/* Ours, beyond the kernel's: MIGRATE_ID takes two steps. CM_COMMAND_RELEASE_ID on the
	 * channel that has the identifier (body: struct rdma_ucm_destroy_id, response unused)
	 * returns a struct cm_channel_ticket; MIGRATE_ID on the new channel has the ticket's low
	 * half in `id` and the high one in `fd`. A ticket is valid once; until it is used the
	 * identifier does not move. */
	CM_COMMAND_RELEASE_ID = 0x100,
	/* The channel's program uses these HCAs only (body: struct cm_channel_hcas, no response):
	 * no others are chosen for it, and nobody reaches it through others. -EBUSY: it has
	 * identifiers; -EINVAL. */
	CM_COMMAND_USE_HCAS = 0x101,
	CM_CHANNEL_HCAS = 4,
};

/* Names of HCAs, whether there or not. None: all. */
struct cm_channel_hcas {
	char name[CM_CHANNEL_HCAS][32]; /* each ends with a NUL; the empty ones are the last */
};
static inline bool cm_channel_uses(const struct cm_channel_hcas *hcas, const char *hca)
{
	bool uses = !hcas->name[0][0];

	for (unsigned int i = 0; i < CM_CHANNEL_HCAS && !uses; i++)
		uses = hcas->name[i][0] && strcmp(hcas->name[i], hca) == 0;
	return uses;
}

struct cm_channel_ticket {
	uint64_t ticket;
};

enum cm_channel_flags {
	CM_CHANNEL_QUIET = 1,	    /* no event is pending: take the byte from the channel */
	CM_CHANNEL_QUIET_THERE = 2, /* MIGRATE_ID: the identifier took the former channel's last
					events along: take the byte there */
	CM_CHANNEL_ON_DEVICE = 4,   /* BIND_IP, BIND: the identifier is bound to a device */
};

struct cm_channel_reply {
	int32_t status;	     /* 0 or -errno */
	uint32_t flags;	     /* enum cm_channel_flags */
	uint32_t bytes;	     /* that follow; at most the command header's `out` */
	uint32_t counts_for; /* GET_EVENT: number of the identifier, + 1; else 0 */
};

static_assert(sizeof(struct cm_channel_reply) == 16, "header of a reply");

#endif
