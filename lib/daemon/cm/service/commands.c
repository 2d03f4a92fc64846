/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of commands, from commands.def: checks lengths before a handler sees anything, and
 * truncates responses to the room that the program has. Runs in the CM thread.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <sys/param.h>
#include "commands.h"

struct command {
	uint16_t body_least, response, response_least;
	int (*run)(struct ucm_call *call, const void *in, void *out);
};

#define COMMAND(NAME, name, type, type_least, result, result_least)                                \
	static int run_##name(struct ucm_call *call, const void *in, void *out)                    \
	{                                                                                          \
		return ucm_do_##name(call, in, out);                                               \
	}
#include "commands.def"

static int run_release_id(struct ucm_call *call, const void *in, void *out)
{
	return ucm_do_release_id(call, in, out);
}

static const struct command commands[] = {
#define COMMAND(NAME, name, type, type_least, result, result_least)                                \
	[RDMA_USER_CM_CMD_##NAME] = {type_least, sizeof(struct result), result_least, run_##name},
#include "commands.def"
};

static const struct command release_id = {offsetof(struct rdma_ucm_destroy_id, reserved),
					  sizeof(struct cm_channel_ticket),
					  sizeof(struct cm_channel_ticket), run_release_id};

static int run_use_hcas(struct ucm_call *call, const void *in, void *out)
{
	const struct cm_channel_hcas *hcas = in;

	(void)out;
	for (unsigned int i = 0; i < CM_CHANNEL_HCAS; i++)
		if (!memchr(hcas->name[i], 0, sizeof(hcas->name[i])))
			return -EINVAL;
	if (!LIST_EMPTY(&call->channel->ids))
		return -EBUSY;
	call->channel->hcas = *hcas;
	return 0;
}

static const struct command use_hcas = {sizeof(struct cm_channel_hcas), 0, 0, run_use_hcas};

static const struct command *ucm_command_find(uint32_t number)
{
	if (number < sizeof(commands) / sizeof(commands[0]))
		return &commands[number];
	if (number == CM_COMMAND_USE_HCAS)
		return &use_hcas;
	return number == CM_COMMAND_RELEASE_ID ? &release_id : NULL;
}

int ucm_run(struct ucm_call *call, const uint8_t *message, size_t message_bytes,
	    struct ucm_largest *response, uint32_t *bytes)
{
	struct rdma_ucm_cmd_hdr h;
	/* Aligned, and zero-padded; as long as any message. */
	_Alignas(8) uint8_t body[CM_CHANNEL_BYTES_MAX] = {0};
	_Alignas(8) struct ucm_largest whole = {{0}};
	const struct command *c;
	int ret;

	*bytes = 0;
	if (message_bytes < sizeof(h))
		return -EINVAL;
	memcpy(&h, message, sizeof(h));
	if (h.in > message_bytes - sizeof(h))
		return -EINVAL;
	c = ucm_command_find(h.cmd);
	if (!c || h.in < c->body_least)
		return -EINVAL;
	if (h.out < c->response_least)
		return -ENOSPC;
	memcpy(body, message + sizeof(h), h.in);
	call->out = h.out;
	call->bytes = c->response;
	call->extra = message + sizeof(h) + h.in;
	call->extra_bytes = (uint32_t)(message_bytes - sizeof(h) - h.in);
	ret = c->run(call, body, &whole);
	if (ret)
		return ret;
	*bytes = MIN(call->bytes, call->out);
	memcpy(response, &whole, *bytes);
	return 0;
}

int ucm_do_get_option(struct ucm_call *call, const struct ucm_none *in, struct ucm_none *out)
{
	(void)call, (void)in, (void)out;
	return -ENOSYS; /* as every kernel */
}
