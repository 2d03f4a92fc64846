/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_COMMANDS_H
#define CM_SERVICE_COMMANDS_H
/* Commands: the dispatcher, and the functions that execute them, each in the file of its subject.
 * CM thread only. */
#include "ucm.h"

/* Executes a message; *bytes: of the response. Flags: in call. 0 or -errno for the program. */
int ucm_run(struct ucm_call *call, const uint8_t *message, size_t message_bytes,
	    struct ucm_largest *response, uint32_t *bytes);

#define COMMAND(NAME, name, body, body_least, response, response_least)                            \
	int ucm_do_##name(struct ucm_call *call, const struct body *in, struct response *out);
#include "commands.def"
int ucm_do_release_id(struct ucm_call *call, const struct rdma_ucm_destroy_id *in,
		      struct cm_channel_ticket *out);

#endif
