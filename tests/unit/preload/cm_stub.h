/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_STUB_H
#define CM_STUB_H
/*
 * What a daemon looks like to lib/host/preload's rdma_cm: a control socket that knows
 * CONTROL_OPEN_CM alone, and channels whose answers the test chooses. One thread; speaks to sockets
 * by system calls that the library under test does not stand in front of.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stub_way {
	STUB_ANSWER,
	STUB_NO_REPLY,	  /* the reply's socket is closed unused */
	STUB_DIE,	  /* the channel too */
	STUB_SHORT_REPLY, /* half a header */
	STUB_LONG_REPLY,  /* more than the command had room for */
	STUB_LYING_REPLY, /* with a length that is not its own */
	STUB_ODD_STATUS,  /* > 0 */
};

struct stub_command {
	uint32_t cmd;
	uint16_t in, out;
	uint8_t body[1024];
	size_t bytes; /* of body */
	unsigned int channel;
};

/* Makes a folder with the socket and its tree, sets SOFTHCA_SOCKET. */
void stub_start(void);
void stub_stop(void);
/* Ends the listener and all connections, as a daemon that was killed. */
void stub_kill(void);
/* Listens again, where it did. */
void stub_again(void);
const char *stub_folder(void);

/* The answer to CONTROL_OPEN_CM. */
void stub_set_open(int status);
/* The answer to commands other than GET_EVENT: status, flags, bytes. */
void stub_set_answer(enum stub_way way, int status, uint32_t flags, const void *bytes, size_t n);
/* Reads nothing while paused. */
void stub_set_paused(bool paused);
/* The last command other than GET_EVENT, and the first of its kind. */
struct stub_command stub_last(void);
struct stub_command stub_last_of(uint32_t cmd);
/* An event of the channel, numbered from 0 in order of opening, happens. */
void stub_event(unsigned int channel, uint32_t event);
/* Which identifier events are of from now on, and which one they count for (+ 1; 0: none). */
void stub_set_event_id(uint32_t id, uint32_t counts_for);
/* Waits until that many GET_EVENTs have been answered with -EAGAIN. False: not in a minute. */
bool stub_wait_empty(unsigned int n);
unsigned int stub_empty(void);
/* Waits until a request waits for the paused daemon. False: not in a minute. */
bool stub_wait_request(void);
/* Waits until that many channels are open. False: not in a minute. */
bool stub_wait_channels(unsigned int n);

#endif
