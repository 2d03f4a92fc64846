/* SPDX-License-Identifier: BSD-3-Clause */
/* Each message of the peer in each state: whether it moves, is answered, or changes nothing. */
#include "cm_fixture.h"

static void until_rep_sent(struct cm_connection **c, struct cm_connection **s)
{
	until_req(c, s);
	answer();
	take(&server, CM_REP);
}

static void until_dreq(struct cm_connection **c, struct cm_connection **s)
{
	establish(c, s);
	assert_int_equal(cm_send_dreq(*c, now, NULL, 0), 0);
	carry(&client, CM_DREQ);
	heard(&server, CM_EVENT_DREQ);
}

static void until_both_left(struct cm_connection **c, struct cm_connection **s)
{
	establish(c, s);
	disconnect(*c, *s);
}

/* The columns below. An event is heard where the message moves the connection, but for MRAs. */
static const struct {
	enum cm_type type;
	uint8_t about;
	uint16_t reason;
	int event;
} columns[] = {
	{CM_REQ, 0, 0, -1},
	{CM_MRA, CM_ABOUT_REQ, 0, -1},
	{CM_MRA, CM_ABOUT_REP, 0, -1},
	{CM_MRA, CM_ABOUT_OTHER, 0, -1},
	{CM_REP, 0, 0, CM_EVENT_REP},
	{CM_RTU, 0, 0, CM_EVENT_RTU},
	{CM_REJ, CM_ABOUT_OTHER, CM_REJ_CONSUMER, CM_EVENT_REJ},
	{CM_REJ, CM_ABOUT_OTHER, CM_REJ_STALE_CONNECTION, CM_EVENT_REJ},
	{CM_DREQ, 0, 0, CM_EVENT_DREQ},
	{CM_DREP, 0, 0, CM_EVENT_DREP},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), CELL = 16 };

/* A cell is the state that follows, or what is sent; dup, stray: counted as such, no more; the
 * answers to what comes once more count as dup, a REJ as stray. A REQ is the one that the
 * connection began with. */
/* clang-format off */
static const struct row {
	void (*until)(struct cm_connection **c, struct cm_connection **s);
	struct side *side;
	const char *cells;
} rows[] = {
	/*                            REQ   MRA of REQ    MRA of REP    other  REP       RTU          REJ       stale     DREQ       DREP */
	{until_req, &client,         "-     MRA_REQ_RCVD  dup           dup    REP_RCVD  stray        IDLE      TIMEWAIT  stray      dup"},
	{until_mra_of_req, &client,  "-     dup           dup           dup    REP_RCVD  stray        IDLE      TIMEWAIT  stray      dup"},
	{until_rep, &client,         "-     dup           dup           dup    dup       stray        TIMEWAIT  TIMEWAIT  stray      dup"},
	{until_mra_of_rep, &client,  "-     dup           dup           dup    MRA       stray        TIMEWAIT  TIMEWAIT  stray      dup"},
	{establish, &client,         "-     dup           dup           dup    RTU       stray        TIMEWAIT  TIMEWAIT  DREQ_RCVD  dup"},
	{until_dreq, &client,        "-     dup           dup           dup    dup       stray        TIMEWAIT  TIMEWAIT  DREQ_RCVD  TIMEWAIT"},
	{until_both_left, &client,   "-     dup           dup           dup    dup       stray        stray     stray     DREP       dup"},
	{until_req, &server,         "dup   dup           dup           dup    REJ       dup          IDLE      IDLE      stray      dup"},
	{until_mra_of_req, &server,  "MRA   dup           dup           dup    REJ       dup          IDLE      IDLE      stray      dup"},
	{until_rep_sent, &server,    "REP   dup           MRA_REP_RCVD  dup    REJ       ESTABLISHED  IDLE      TIMEWAIT  DREQ_RCVD  dup"},
	{until_mra_of_rep, &server,  "dup   dup           dup           dup    REJ       ESTABLISHED  IDLE      TIMEWAIT  DREQ_RCVD  dup"},
	{establish, &server,         "dup   dup           dup           dup    REJ       dup          TIMEWAIT  TIMEWAIT  DREQ_RCVD  dup"},
	{until_dreq, &server,        "dup   dup           dup           dup    REJ       dup          stray     stray     dup        TIMEWAIT"},
	{until_both_left, &server,   "-     dup           dup           dup    REJ       dup          stray     stray     DREP       dup"},
};
/* clang-format on */

static struct cm_message message(struct side *to, const struct cm_connection *mine,
				 const struct cm_connection *its, unsigned int column)
{
	struct side *from = other(to);
	struct cm_message m = message_of(from, its, columns[column].type);

	m.remote_id = message_of(to, mine, m.type).local_id;
	switch (m.type) {
	case CM_REQ:
		return first_sent(&client, CM_REQ);
	case CM_MRA:
		m.mra.about = columns[column].about;
		break;
	case CM_REP:
		m.rep.qpn = to == &client ? SERVER_QPN : CLIENT_QPN;
		m.rep.guid = from->guid;
		break;
	case CM_REJ:
		m.rej.about = columns[column].about;
		m.rej.reason = columns[column].reason;
		break;
	case CM_DREQ:
		m.dreq.remote_qpn = to == &client ? CLIENT_QPN : SERVER_QPN;
		break;
	default:
		break;
	}
	return m;
}

static void check_answer(struct side *s, const struct cm_message *to, const char *cell)
{
	struct cm_message m;

	if (s->taken == s->sent)
		fail_msg("nothing was sent");
	cm_mad_parse(s->outbox[s->taken], CM_MAD_BYTES, &m);
	m = take(s, m.type);
	assert_string_equal(cm_type_name(m.type), cell);
	if (m.type == CM_REJ)
		assert_int_equal(m.rej.reason, CM_REJ_INVALID_COMM_ID);
	if (m.type == CM_REJ)
		assert_true(m.transaction == to->transaction);
}

static void check_cell(const struct row *r, unsigned int column, const char *cell)
{
	struct cm_connection *c, *s, *mine;
	struct cm_counters before;
	const struct cm_counters *after = cm_counters(r->side->cm);
	struct cm_message m;
	bool moves, stray, answered;
	char state[CELL];

	r->until(&c, &s);
	mine = r->side == &client ? c : s;
	snprintf(state, sizeof(state), "%s", state_of(mine));
	print_message("%s: message %u: %s\n", state, column, cell);
	m = message(r->side, mine, mine == c ? s : c, column);
	answered = strlen(cell) <= 4 && strcmp(cell, "dup") != 0 && strcmp(cell, "IDLE") != 0;
	stray = !strcmp(cell, "stray") || !strcmp(cell, "REJ");
	moves = !answered && strcmp(cell, "dup") != 0 && !stray;
	before = *after;
	deliver(r->side, &m);
	check_state(mine, moves ? cell : state);
	if (answered)
		check_answer(r->side, &m, cell);
	sent_nothing(r->side);
	if (moves && columns[column].event >= 0) {
		heard(r->side, (enum cm_event_type)columns[column].event);
		deliver(r->side, &m); /* once more */
	}
	heard_nothing(r->side);
	if (!moves) {
		assert_int_equal(after->mad_stray - before.mad_stray, stray);
		assert_int_equal(after->duplicate - before.duplicate, !stray);
	}
	assert_int_equal(after->rejected, before.rejected);
	wind_up(c, s);
}

TEST(state__by_message)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *at = rows[i].cells;
		char cell[CELL];

		for (unsigned int column = 0; column < COLUMNS; column++) {
			int n = 0;

			assert_int_equal(sscanf(at, "%15s%n", cell, &n), 1);
			at += n;
			if (strcmp(cell, "-") != 0)
				check_cell(&rows[i], column, cell);
		}
	}
}
