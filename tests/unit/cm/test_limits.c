/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits under floods; the tables by which connections are found. */
#include "cm_fixture.h"
#include "tables.h"

static struct cm_message a_req(uint32_t id, uint32_t qpn)
{
	struct cm_message m = {.type = CM_REQ, .transaction = id, .local_id = id};

	m.req.guid = client.guid;
	m.req.qpn = qpn;
	m.req.mtu = 3;
	m.req.service_id = SERVICE;
	m.req.local_timeout = 20;
	m.req.path.ack_timeout = 17;
	memcpy(m.req.path.local_gid, client.gid, 16);
	memcpy(m.req.path.remote_gid, server.gid, 16);
	return m;
}

static void restart(const struct cm_limits *limits)
{
	cm_destroy(client.cm);
	cm_destroy(server.cm);
	pair_start(limits);
}

static uint32_t connections_of(const struct side *s)
{
	uint32_t connections, orphans;

	cm_census(s->cm, &connections, &orphans);
	return connections;
}

/* Programs that do not answer, or strangers that do not mean it. */
TEST(flood__of_reqs_is_bounded_and_counted)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	establish(&c, &s);
	for (uint32_t i = 1; i <= 5000; i++) {
		m = a_req(i, 0x10000 + i);
		deliver(&server, &m);
	}
	assert_int_equal(server.requests, 1 + 64);
	assert_int_equal(connections_of(&server), 1 + 64);
	assert_int_equal(cm_counters(server.cm)->dropped_source, 5000 - 64);
	sent_nothing(&server);
	check_state(s, "ESTABLISHED");
	cm_send_dreq(c, now, NULL, 0); /* the established one continues undisturbed */
	carry(&client, CM_DREQ);
	heard(&server, CM_EVENT_DREQ);
	cm_release(server.requested, now); /* one is answered: the next may come */
	take(&server, CM_REJ);
	m = a_req(6000, 0x20000);
	deliver(&server, &m);
	assert_int_equal(server.requests, 1 + 64 + 1);
}

/* Each address floods: it has its part, until all is taken. */
TEST(flood__of_one_source_leaves_others_their_part)
{
	struct cm_message m;
	uint32_t id = 1;

	for (uint8_t last = 1; last <= 17; last++) {
		client.gid[15] = last;
		for (unsigned int i = 0; i < 100; i++, id++) {
			m = a_req(id, 0x10000 + id);
			deliver(&server, &m);
		}
		assert_int_equal(server.requests, last < 16 ? last * 64u : 1024);
	}
	assert_int_equal(cm_counters(server.cm)->dropped_source, 15 * 36);
	assert_int_equal(cm_counters(server.cm)->dropped_full, 36 + 100);
}

TEST(flood__of_sidr_reqs_counts_with_them)
{
	struct cm_message m = {.type = CM_SIDR_REQ};

	restart(&(struct cm_limits){.unanswered = 3, .of_source = 3});
	for (uint32_t i = 1; i <= 2; i++) {
		m.sidr_req.request_id = i;
		deliver(&server, &m);
	}
	m = a_req(1, 2);
	deliver(&server, &m);
	m = a_req(2, 3);
	deliver(&server, &m);
	m = (struct cm_message){.type = CM_SIDR_REQ, .sidr_req.request_id = 3};
	deliver(&server, &m);
	assert_int_equal(server.requests, 3);
	assert_int_equal(cm_counters(server.cm)->dropped_full, 2);
}

/* The last eighth is for our own programs. */
TEST(limit__of_connections)
{
	struct cm_path path;
	struct cm_message m;

	restart(&(struct cm_limits){.connections = 16});
	path = path_between(&server, &client);
	for (uint32_t i = 1; i <= 20; i++) {
		m = a_req(i, i + 1);
		deliver(&server, &m);
	}
	assert_int_equal(server.requests, 14);
	assert_int_equal(cm_counters(server.cm)->dropped_full, 6);
	for (int i = 0; i < 2; i++)
		assert_non_null(
			cm_send_req(server.cm, now, &server, &path, SERVICE, CM_RC, &server_end));
	assert_fails(cm_send_req(server.cm, now, &server, &path, SERVICE, CM_RC, &server_end),
		     ENOSPC);
	assert_fails(cm_send_sidr_req(server.cm, now, &server, &path, SERVICE, NULL, 0), ENOSPC);
	take(&server, CM_REQ);
	take(&server, CM_REQ);
}

/* Of many that are due at once some wait for the next call. */
TEST(limit__of_what_is_done_at_once)
{
	enum { MANY = CM_EXPIRED_MOST + 100 };
	static struct cm_connection *c[MANY];
	struct cm_path path = path_between(&client, &server);
	uint64_t due;

	for (unsigned int i = 0; i < MANY; i++) {
		c[i] = cm_send_req(client.cm, now, &client, &path, SERVICE, CM_RC, &server_end);
		assert_non_null(c[i]);
		take(&client, CM_REQ);
	}
	due = cm_expire(client.cm, now);
	now = due;
	assert_true(cm_expire(client.cm, now) <= now);
	assert_int_equal(cm_counters(client.cm)->retry, CM_EXPIRED_MOST);
	assert_true(cm_expire(client.cm, now) > now);
	assert_int_equal(cm_counters(client.cm)->retry, MANY);
	for (unsigned int i = 0; i < MANY; i++)
		cm_release(c[i], now);
	client.taken = client.sent;
	check_empty();
}

TEST(limit__leaves_ids_their_random_bits)
{
	uint32_t last[64] = {0};

	restart(&(struct cm_limits){.connections = UINT32_MAX});
	assert_int_equal(client.cm->places.bits, 24);
	/* Not all 0, not those that the place had before. */
	for (int i = 0; i < 4000; i++) {
		struct cm_connection *c = ask();
		uint32_t id = take(&client, CM_REQ).local_id, place = id & 0xffffff;

		assert_in_range(place, 0, 63);
		assert_int_not_equal(id >> 24, 0);
		assert_int_not_equal(id, last[place]);
		last[place] = id;
		cm_release(c, now);
		client.taken = client.sent = 0;
	}
}

TEST(receive__what_is_malformed_is_counted)
{
	struct cm_path path = path_between(&server, &client);
	struct cm_message m = a_req(1, 2);
	uint8_t mad[CM_MAD_BYTES];

	cm_mad_build(&m, mad);
	cm_receive(server.cm, now, &path, mad, sizeof(mad) - 1);
	mad[1]++; /* management class */
	cm_receive(server.cm, now, &path, mad, sizeof(mad));
	assert_int_equal(cm_counters(server.cm)->mad_malformed, 2);
	assert_int_equal(server.requests, 0);
}

/* About a connection that is not there, whatever it is: who waits for an answer gets one. */
TEST(receive__about_nothing)
{
	static const struct {
		enum cm_type type, answer; /* 0: none */
	} rows[] = {{CM_MRA, 0},	{CM_REJ, 0},  {CM_REP, CM_REJ}, {CM_RTU, 0},
		    {CM_DREQ, CM_DREP}, {CM_DREP, 0}, {CM_LAP, CM_APR}, {CM_SIDR_REP, 0}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cm_message m = {.type = rows[i].type, .local_id = 7}, answer;

		m.remote_id = 1u << 31 | client.cm->places.count; /* behind the last place */
		if (m.type == CM_REP)
			m.rep.qpn = SERVER_QPN;
		if (m.type == CM_SIDR_REP)
			m.sidr_rep.request_id = m.remote_id;
		deliver(&client, &m);
		assert_int_equal(cm_counters(client.cm)->mad_stray, i + 1);
		if (!rows[i].answer)
			continue;
		answer = take(&client, rows[i].answer);
		assert_int_equal(answer.local_id, m.remote_id);
		assert_int_equal(answer.remote_id, m.local_id);
		if (m.type == CM_REP) {
			assert_int_equal(answer.rej.reason, CM_REJ_INVALID_COMM_ID);
			assert_int_equal(answer.rej.about, CM_ABOUT_REP);
		}
	}
	assert_int_equal(cm_counters(client.cm)->rejected, 0); /* that counts requests */
	check_empty();
}

/* --- the tables --- */

/* 1000 IDs one after another: none comes twice, places are reused as late as possible. */
TEST(id__is_not_used_again_soon)
{
	enum { N = 1000 };
	static uint32_t id[N];
	struct cm_connection *first = ask();

	take(&client, CM_REQ);
	assert_int_equal(client.cm->places.count, 64); /* they grow with need */
	for (int i = 0; i < N; i++) {
		struct cm_connection *c = ask();

		id[i] = take(&client, CM_REQ).local_id;
		assert_int_not_equal(id[i], 0);
		cm_release(c, now);
		take(&client, CM_REJ);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(id[i], id[j]);
		for (int j = i > 60 ? i - 60 : 0; j < i; j++) /* places: 16 bits of 65536 */
			assert_int_not_equal(id[i] & 0xffff, id[j] & 0xffff);
	}
	wind_up(first, NULL);
}

TEST(id__of_a_place_that_is_used_again_finds_nothing)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	restart(&(struct cm_limits){.connections = 2});
	until_req(&c, &s);
	m = message_of(&client, c, CM_RTU);
	m.remote_id = message_of(&server, s, CM_RTU).local_id;
	for (uint32_t above = 0; above < 2000; above++) {
		struct cm_message guess = m;

		guess.remote_id = above << 1 | (m.remote_id & 1);
		guess.type = CM_REJ;
		guess.rej.about = CM_ABOUT_OTHER;
		if (guess.remote_id != m.remote_id)
			deliver(&server, &guess);
	}
	check_state(s, "REQ_RCVD");
	wind_up(c, s);
}

/* Due times set, moved and cancelled at random: they come in order, each once. */
TEST(timers__come_in_order)
{
	enum { N = 500, STEPS = 20000 };
	static struct cm_connection *c[N];
	uint64_t seed = 7, last = 0;
	uint32_t set = 0;

	for (int i = 0; i < N; i++) {
		c[i] = ask();
		cm_timer_cancel(c[i]);
	}
	client.taken = client.sent = 0;
	for (int i = 0; i < STEPS; i++) {
		struct cm_connection *one;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		one = c[(seed >> 33) % N];
		if (seed >> 61)
			cm_timer_set(one, seed >> 40);
		else
			cm_timer_cancel(one);
	}
	for (int i = 0; i < N; i++)
		set += c[i]->heap_at != 0;
	assert_true(set > N / 2);
	assert_int_equal(client.cm->timers.count, set);
	while (client.cm->timers.count) {
		struct cm_connection *next = client.cm->timers.heap[1];

		assert_true(next->due >= last);
		assert_int_equal(next->heap_at, 1);
		last = next->due;
		cm_timer_cancel(next);
		set--;
	}
	assert_int_equal(set, 0);
	for (int i = 0; i < N; i++)
		cm_release(c[i], now);
	client.taken = client.sent = 0;
	check_empty();
}

/* Many are due at once, and the notification of one releases another that is due as well. */
static struct cm_connection *pair_of[2];

static void release_both(struct side *s, struct cm_connection *c, const struct cm_event *e)
{
	for (int i = 0; i < 2; i++)
		cm_release(pair_of[i], now);
	s->on_event = NULL;
}

TEST(expire__of_one_may_release_another)
{
	pair_of[0] = ask();
	pair_of[1] = ask();
	client.on_event = release_both;
	pass_all_lost();
	check_empty();
	assert_int_equal(cm_counters(client.cm)->timeout, 1);
}

/* Many of one peer: each found, none of them another's. */
TEST(hash__finds_each_of_many)
{
	enum { N = 3000 };
	static struct cm_connection *c[N];

	restart(&(struct cm_limits){.unanswered = N, .of_source = N});
	for (uint32_t i = 0; i < N; i++) {
		struct cm_message m = a_req(1 + i, 2 + i);

		deliver(&server, &m);
		c[i] = server.requested;
	}
	assert_int_equal(server.requests, N);
	/* Chains that no peer can foresee. */
	for (int i = 0; i < 2; i++)
		assert_int_not_equal(client.cm->seed[i], server.cm->seed[i]);
	for (uint32_t i = 0; i < N; i++) {
		struct cm_message m = a_req(1 + i, 2 + i);

		deliver(&server, &m); /* the same ID: a repetition */
		m.local_id += N;
		deliver(&server, &m); /* the same QP: stale */
		take(&server, CM_REJ);
	}
	assert_int_equal(server.requests, N);
	assert_int_equal(cm_counters(server.cm)->duplicate, N);
	assert_int_equal(cm_counters(server.cm)->stale, N);
	for (uint32_t i = 0; i < N; i++) {
		cm_release(c[i], now);
		take(&server, CM_REJ);
		server.sent = server.taken = 0;
	}
	pass_all_lost();
	check_empty();
}

/* Two peers that differ in one thing only, until many pairs were in the same chain. */
TEST(hash__tells_peers_apart)
{
	enum { GUID, DEVICE, GID, SIDR, NUMBERS, KINDS };
	uint32_t rounds = 0;

	for (unsigned int kind = 0; kind < KINDS; kind++) {
		for (uint32_t i = 0; i < 1000; i++, rounds++) {
			struct cm_message m = a_req(2 * i + 1, 2 * i + 2);
			struct cm_connection *first;

			m.req.guid = 0; /* as SIDR has it */
			deliver(&server, &m);
			first = server.requested;
			m.req.guid = kind == GUID;
			if (kind == SIDR)
				m = (struct cm_message){.type = CM_SIDR_REQ,
							.sidr_req.request_id = m.local_id};
			if (kind == NUMBERS) {
				m.local_id++;
				m.req.qpn++;
			}
			if (kind == GID) {
				memcpy(m.req.path.local_gid, &(uint32_t){~i}, sizeof(i));
				deliver_from(&server, m.req.path.local_gid, &m);
			} else {
				deliver_to_device(&server, kind == DEVICE, &m);
			}
			assert_int_equal(server.requests, 2 * (rounds + 1));
			cm_forget(first);
			cm_forget(server.requested);
		}
	}
	check_empty();
}

TEST(destroy__with_all_that_there_is)
{
	struct cm_connection *c, *s;

	establish(&c, &s);
	cm_release(s, now);
	take(&server, CM_DREQ);
	ask();
	take(&client, CM_REQ);
	cm_destroy(NULL);
}
