/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connection managers and what is between them: cm_fixture.h. */
#include "cm_fixture.h"
#include "pipeline/machine.h"

struct side client, server;
uint64_t now;

const struct cm_end client_end = {.qpn = CLIENT_QPN,
				  .psn = 0x111111,
				  .responder_resources = 3,
				  .initiator_depth = 4,
				  .retry_count = 7,
				  .rnr_retry_count = 6,
				  .private_data = "hello",
				  .private_bytes = 5};
const struct cm_end server_end = {.qpn = SERVER_QPN,
				  .psn = 0x222222,
				  .responder_resources = 5,
				  .initiator_depth = 2,
				  .rnr_retry_count = 1,
				  .srq = true,
				  .private_data = "welcome",
				  .private_bytes = 7};

const uint8_t elsewhere[16] = {[10] = 0xff, 0xff, 10, 222, 0, 9};

struct side *other(struct side *s)
{
	return s == &client ? &server : &client;
}

static void side_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	struct side *s = ctx;

	assert_true(s->sent < OUTBOX);
	memcpy(s->outbox[s->sent], mad, CM_MAD_BYTES);
	s->outpath[s->sent++] = *path;
}

static void *side_request(void *ctx, struct cm_connection *c, const struct cm_path *path,
			  const struct cm_message *m, uint16_t *reason)
{
	struct side *s = ctx;

	s->requests++;
	s->requested = c;
	s->request = *m;
	if (s->reason != 0xffff)
		*reason = s->reason;
	if (s->on_request)
		s->on_request(s, c);
	return s->serves;
}

static void side_event(void *ctx, void *owner, struct cm_connection *c, const struct cm_event *e)
{
	struct side *s = ctx;
	struct told *t = &s->told[s->events++ % TOLD];

	*t = (struct told){.type = e->type, .owner = owner, .c = c, .has_message = e->message};
	if (e->message)
		t->message = *e->message;
	if (s->on_event)
		s->on_event(s, c, e);
}

static uint64_t side_guid(void *ctx, unsigned int device)
{
	return ((struct side *)ctx)->guid;
}

static uint32_t side_random(void *ctx)
{
	struct side *s = ctx;

	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(s->random >> 32);
}

static const struct cm_ops side_ops = {.send = side_send,
				       .request = side_request,
				       .event = side_event,
				       .guid = side_guid,
				       .random = side_random};

static void side_start(struct side *s, uint8_t number, const struct cm_limits *limits)
{
	memset(s, 0, sizeof(*s));
	s->guid = 0x5054000000000000u + number;
	memcpy(s->gid, (uint8_t[16]){[10] = 0xff, 0xff, 10, 222, 0, number}, 16);
	s->random = number;
	s->reason = 0xffff;
	s->serves = s;
	s->cm = cm_create(&side_ops, s, limits);
	assert_non_null(s->cm);
}

void side_restart(struct side *s)
{
	cm_destroy(s->cm);
	s->cm = cm_create(&side_ops, s, NULL);
	assert_non_null(s->cm);
}

void pair_start(const struct cm_limits *limits)
{
	now = 1000;
	side_start(&client, 1, limits);
	side_start(&server, 2, limits);
}

int pair_setup(void **state)
{
	machine_set_test(*state);
	pair_start(NULL);
	return 0;
}

int pair_teardown(void **state)
{
	sent_nothing(&client);
	sent_nothing(&server);
	heard_nothing(&client);
	heard_nothing(&server);
	cm_destroy(client.cm);
	cm_destroy(server.cm);
	return 0;
}

struct cm_path path_between(const struct side *from, const struct side *to)
{
	struct cm_path p = {.hop_limit = 64, .mtu = 3, .ack_timeout = 17, .rate = 3};

	memcpy(p.sgid, from->gid, sizeof(p.sgid));
	memcpy(p.dgid, to->gid, sizeof(p.dgid));
	return p;
}

struct cm_message take(struct side *s, enum cm_type type)
{
	struct cm_message m;

	if (s->taken == s->sent)
		fail_msg("nothing was sent; a %s should have been", cm_type_name(type));
	assert_int_equal(cm_mad_parse(s->outbox[s->taken++], CM_MAD_BYTES, &m), CM_WELL_FORMED);
	if (m.type != type)
		fail_msg("a %s was sent instead of a %s", cm_type_name(m.type), cm_type_name(type));
	return m;
}

void sent_nothing(const struct side *s)
{
	struct cm_message m;

	if (s->taken == s->sent)
		return;
	cm_mad_parse(s->outbox[s->taken], CM_MAD_BYTES, &m);
	fail_msg("%u messages were sent and not looked at, the first: %s", s->sent - s->taken,
		 cm_type_name(m.type));
}

struct cm_message first_sent(const struct side *s, enum cm_type type)
{
	struct cm_message m;

	for (unsigned int i = 0; i < s->sent; i++)
		if (cm_mad_parse(s->outbox[i], CM_MAD_BYTES, &m) == CM_WELL_FORMED &&
		    m.type == type)
			return m;
	fail_msg("no %s was sent", cm_type_name(type));
	abort(); /* does not come here */
}

static void deliver_by(struct side *s, struct cm_path *path, const struct cm_message *m)
{
	uint8_t mad[CM_MAD_BYTES];

	path->mtu = path->ack_timeout = path->rate = 0;
	cm_mad_build(m, mad);
	cm_receive(s->cm, now, path, mad, sizeof(mad));
}

void deliver_from(struct side *s, const uint8_t gid[16], const struct cm_message *m)
{
	struct cm_path path = path_between(s, other(s));

	memcpy(path.dgid, gid, sizeof(path.dgid));
	deliver_by(s, &path, m);
}

void deliver_to_device(struct side *s, uint16_t device, const struct cm_message *m)
{
	struct cm_path path = path_between(s, other(s));

	path.device = device;
	deliver_by(s, &path, m);
}

void deliver(struct side *s, const struct cm_message *m)
{
	deliver_from(s, other(s)->gid, m);
}

void carry(struct side *s, enum cm_type type)
{
	struct cm_message m = take(s, type);

	deliver(other(s), &m);
}

const struct told *heard(struct side *s, enum cm_event_type type)
{
	if (s->read == s->events)
		fail_msg("nothing was told; event %d should have been", type);
	assert_int_equal(s->told[s->read % TOLD].type, type);
	return &s->told[s->read++ % TOLD];
}

void heard_nothing(const struct side *s)
{
	if (s->read != s->events)
		fail_msg("event %d was told", s->told[s->read % TOLD].type);
}

void pass(uint64_t ns)
{
	now += ns;
	cm_expire(client.cm, now);
	cm_expire(server.cm, now);
}

void pass_all_lost(void)
{
	for (;;) {
		uint64_t a = cm_expire(client.cm, now), b = cm_expire(server.cm, now);

		client.taken = client.sent = server.taken = server.sent = 0;
		client.read = client.events = server.read = server.events = 0;
		if (a == UINT64_MAX && b == UINT64_MAX)
			return;
		now = a < b ? a : b;
	}
}

const char *state_of(const struct cm_connection *c)
{
	struct cm_connection_info info;

	cm_connection_info(c, &info);
	return info.state;
}

void check_state(const struct cm_connection *c, const char *name)
{
	assert_string_equal(state_of(c), name);
}

void check_empty(void)
{
	uint32_t connections, orphans;

	for (struct side *s = &client;; s = &server) {
		cm_census(s->cm, &connections, &orphans);
		assert_int_equal(connections, 0);
		assert_int_equal(orphans, 0);
		assert_true(cm_expire(s->cm, now) == UINT64_MAX);
		if (s == &server)
			return;
	}
}

struct cm_connection *ask(void)
{
	struct cm_path path = path_between(&client, &server);
	struct cm_connection *c =
		cm_send_req(client.cm, now, &client, &path, SERVICE, CM_RC, &client_end);

	assert_non_null(c);
	return c;
}

struct cm_connection *answer(void)
{
	assert_int_equal(cm_send_rep(server.requested, now, &server_end), 0);
	return server.requested;
}

struct cm_connection *answer_arrives(void)
{
	struct cm_connection *s = answer();

	carry(&server, CM_REP);
	heard(&client, CM_EVENT_REP);
	return s;
}

void rtu_arrives(struct cm_connection *c)
{
	assert_int_equal(cm_send_rtu(c, now, NULL, 0), 0);
	carry(&client, CM_RTU);
	heard(&server, CM_EVENT_RTU);
}

void establish(struct cm_connection **c, struct cm_connection **s)
{
	*c = ask();
	carry(&client, CM_REQ);
	*s = answer_arrives();
	rtu_arrives(*c);
	check_state(*c, "ESTABLISHED");
	check_state(*s, "ESTABLISHED");
}

void until_req(struct cm_connection **c, struct cm_connection **s)
{
	*c = ask();
	carry(&client, CM_REQ);
	*s = server.requested;
}

void until_rep(struct cm_connection **c, struct cm_connection **s)
{
	until_req(c, s);
	answer_arrives();
}

void until_mra_of_req(struct cm_connection **c, struct cm_connection **s)
{
	until_req(c, s);
	assert_int_equal(cm_send_mra(*s, now, 24), 0);
	carry(&server, CM_MRA);
	check_state(*c, "MRA_REQ_RCVD");
	check_state(*s, "MRA_REQ_SENT");
}

void until_mra_of_rep(struct cm_connection **c, struct cm_connection **s)
{
	until_rep(c, s);
	assert_int_equal(cm_send_mra(*c, now, 24), 0);
	carry(&client, CM_MRA);
	check_state(*c, "MRA_REP_SENT");
	check_state(*s, "MRA_REP_RCVD");
}

void disconnect(struct cm_connection *c, struct cm_connection *s)
{
	assert_int_equal(cm_send_dreq(c, now, NULL, 0), 0);
	carry(&client, CM_DREQ);
	heard(&server, CM_EVENT_DREQ);
	assert_int_equal(cm_send_drep(s, now, NULL, 0), 0);
	carry(&server, CM_DREP);
	heard(&client, CM_EVENT_DREP);
}

struct cm_message message_of(struct side *s, const struct cm_connection *c, enum cm_type type)
{
	struct cm_connection_info info;
	struct cm_message m = {.type = type, .transaction = 99};

	cm_connection_info(c, &info);
	m.local_id = info.local_id;
	m.remote_id = info.remote_id;
	return m;
}

void wind_up(struct cm_connection *c, struct cm_connection *s)
{
	if (c)
		cm_release(c, now);
	if (s)
		cm_release(s, now);
	pass_all_lost();
	check_empty();
}
