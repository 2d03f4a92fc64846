/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CM_FIXTURE_H
#define TESTS_UNIT_CM_FIXTURE_H
/*
 * Two connection managers, client and server, in virtual time. The test controls everything between
 * them: each side's messages wait in its outbox until the test carries, loses or forges them.
 * Notifications of the owners go into a log.
 */
#include "test.h"
#include "cm/connection.h"

enum {
	OUTBOX = 4096,
	TOLD = 64,
	SERVICE = 0x106c8f,
	CLIENT_QPN = 0x1234,
	SERVER_QPN = 0x5678,
	MS = 1000000,
};
/* 4.096 us * 2^20, and the time-wait that an ACK timeout of 17 makes. */
#define RESPONSE_NS ((uint64_t)4096 << 20)
#define TIMEWAIT_NS ((uint64_t)4096 << 18)

struct told {
	enum cm_event_type type;
	void *owner;
	struct cm_connection *c;
	bool has_message;
	struct cm_message message;
};

struct side {
	struct cm *cm;
	uint64_t guid;
	uint8_t gid[16];
	uint64_t random;
	uint8_t outbox[OUTBOX][CM_MAD_BYTES];
	struct cm_path outpath[OUTBOX];
	unsigned int sent, taken;
	struct told told[TOLD];
	unsigned int events, read;
	/* Behaviour of request(): the owner, and what it does before it answers. */
	void *serves;
	uint16_t reason; /* 0xffff: leaves it */
	void (*on_request)(struct side *s, struct cm_connection *c);
	void (*on_event)(struct side *s, struct cm_connection *c, const struct cm_event *e);
	unsigned int requests;
	struct cm_connection *requested;
	struct cm_message request;
};

/* A case on a fresh pair. */
#undef TEST
#define TEST(name) TEST_WITH(name, pair_setup, pair_teardown)

extern struct side client, server;
extern uint64_t now;

/* Fresh sides, both with these limits. */
void pair_start(const struct cm_limits *limits);
int pair_setup(void **state);
/* Checks that there is no notification or message that the test has not read. */
int pair_teardown(void **state);

/* s forgets all its connections, as a daemon that dies and comes back. */
void side_restart(struct side *s);

struct cm_path path_between(const struct side *from, const struct side *to);

/* The oldest message that s sent: its type is checked; taken out of the outbox. */
struct cm_message take(struct side *s, enum cm_type type);
void sent_nothing(const struct side *s);
/* The first of that type that s sent since the last wind_up(), taken or not. */
struct cm_message first_sent(const struct side *s, enum cm_type type);
/* Carries s's oldest message to the other side; its type is checked. */
void carry(struct side *s, enum cm_type type);
/* To s, from the other side, whatever it is. */
void deliver(struct side *s, const struct cm_message *m);
/* From any GID. */
void deliver_from(struct side *s, const uint8_t gid[16], const struct cm_message *m);
/* From the other side, to another of s's devices. */
void deliver_to_device(struct side *s, uint16_t device, const struct cm_message *m);
struct side *other(struct side *s);

/* The owner's oldest event that the test has not read yet; type is checked. */
const struct told *heard(struct side *s, enum cm_event_type type);
void heard_nothing(const struct side *s);

/* Time passes, both sides do what is due. */
void pass(uint64_t ns);
/* Until nothing is due any more; all messages get lost. */
void pass_all_lost(void);

const char *state_of(const struct cm_connection *c);
void check_state(const struct cm_connection *c, const char *name);
/* No connection is left on either side, nothing is due. */
void check_empty(void);

/* The client's request, sent and not carried. */
struct cm_connection *ask(void);
/* The server's answer to the request it got last, sent and not carried. */
struct cm_connection *answer(void);
/* The same, and the client has been notified. */
struct cm_connection *answer_arrives(void);
/* The client's RTU is sent, and the server has been notified. */
void rtu_arrives(struct cm_connection *c);
/* Established on both sides. */
void establish(struct cm_connection **c, struct cm_connection **s);
/* The client's REQ has arrived; the REP, too; the server's MRA to the REQ, the client's to the REP.
 */
void until_req(struct cm_connection **c, struct cm_connection **s);
void until_rep(struct cm_connection **c, struct cm_connection **s);
void until_mra_of_req(struct cm_connection **c, struct cm_connection **s);
void until_mra_of_rep(struct cm_connection **c, struct cm_connection **s);
/* The client's owner disconnects; the server's agrees. Both have been notified. */
void disconnect(struct cm_connection *c, struct cm_connection *s);
/* A message of s's connection c, to be altered or forged. */
struct cm_message message_of(struct side *s, const struct cm_connection *c, enum cm_type type);
/* Both sides release; all messages get lost; time passes until nothing is left. */
void wind_up(struct cm_connection *c, struct cm_connection *s);

extern const struct cm_end client_end, server_end;
/* The GID of neither side. */
extern const uint8_t elsewhere[16];

#endif
