/* SPDX-License-Identifier: BSD-3-Clause */
/* Recovery from losses: what is sent again, how often, how soon. */
#include "peer.h"

enum { OUTSTANDING = 32, BYTES = 65536 };

/* The wire's losses: every request packet with this number (0: none) and its next `again`
 * repetitions; all NAKs if `naks`; the `first` request packets. */
struct loss {
	uint64_t number, again, naks, first;
	uint32_t psn;
	bool armed;
};

static bool lose(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct loss *l = arg;
	struct wire_frame f;

	assert_int_equal(wire_parse_frame(frame, bytes, &f), WIRE_OK);
	if (from == 1 && f.h.opcode == WIRE_RC_ACK && aeth_kind(f.h.syndrome) == AETH_NAK &&
	    l->naks) {
		l->naks--;
		return true;
	}
	if (from == 0 && l->first && wire_opcodes[f.h.opcode].kind == WIRE_KIND_WRITE) {
		l->first--;
		return true;
	}
	if (from == 0 && s->end[0].sent == l->number) {
		l->psn = f.h.psn;
		l->armed = true;
		return true;
	}
	if (from == 0 && l->armed && f.h.psn == l->psn && l->again) {
		l->again--;
		return true;
	}
	return false;
}

/* Keeps OUTSTANDING WRITEs of 16 packets outstanding until `messages` have completed. Others take
 * the CPU for steal_ns at times. */
static struct sim *stream_interrupted(unsigned messages, struct loss loss, struct sim_faults faults,
				      uint64_t steal_ns)
{
	unsigned steps = 0;
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, BYTES, .remote = 1 << 20);
	unsigned posted = 0, done = 0;
	struct sim *s;
	struct cqe c;

	p.mtu = 5;
	p.timeout = 14;
	p.packets = 16383;
	s = sim_create(&p);
	/* What this proves of the sender does not depend on the peer's help. */
	s->node[1].hca->engines[0].settings.loss_recovery = LOSS_RECOVERY_STANDARD;
	s->faults = faults;
	s->tap = lose;
	s->tap_arg = &loss;
	while (done < messages) {
		while (posted - done < OUTSTANDING && posted < messages) {
			sim_post(s, 0, 0, &wr);
			posted++;
		}
		if (steal_ns && ++steps % 97 == 0)
			sim_steal(s, steal_ns);
		sim_step(s);
		while (sim_poll_cq(s, 0, &c)) {
			assert_int_equal(c.opcode, USER_RDMA_WRITE);
			done++;
		}
	}
	s->tap = NULL;
	s->faults = (struct sim_faults){0};
	return s;
}

static struct sim *stream(unsigned messages, struct loss loss, struct sim_faults faults)
{
	return stream_interrupted(messages, loss, faults, 0);
}

/* Packets made before the retransmission go before it, those made after it behind it: one loss is
 * one NAK, and no packet comes twice. */
TEST(recovery__one_loss_draws_one_nak_and_no_duplicate)
{
	for (unsigned at = 2000; at < 2064; at += 7) {
		struct sim *s = stream(400, (struct loss){.number = at}, (struct sim_faults){0});

		assert_int_equal(sim_counter(s, 0, COUNTER_nak_sequence_received), 1);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
		assert_int_equal(sim_counter(s, 1, COUNTER_duplicate_requests), 0);
		rig_end(s);
	}
}

/* The responder reports a loss once. If the packet that it requested is lost too, everything
 * outstanding is sent again after a few round trips: long before the transport timer, and not
 * counted as a retry. */
TEST(recovery__the_repeated_packet_lost_too)
{
	for (unsigned again = 1; again <= 3; again++) {
		struct sim *s = stream(400, (struct loss){.number = 3000, .again = again},
				       (struct sim_faults){0});

		assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_probes), again);
		assert_true(s->now_ns < 10 * MS); /* the timer's first expiry would be at 67 ms */
		rig_end(s);
	}
}

TEST(recovery__the_nak_lost)
{
	struct sim *s =
		stream(400, (struct loss){.number = 3000, .naks = 1}, (struct sim_faults){0});

	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_probes), 1);
	assert_true(s->now_ns < 10 * MS);
	rig_end(s);
}

/* Nothing has arrived, so no round trip is known: one packet goes again, as often as it is lost, and
 * the rest when it is acknowledged. */
TEST(recovery__all_of_the_first_flight_lost)
{
	enum { FLIGHT = 16 };

	for (unsigned again = 0; again <= 2; again++) {
		struct sim *s =
			stream(1, (struct loss){.first = FLIGHT + again}, (struct sim_faults){0});

		assert_int_equal(sim_counter(s, 0, COUNTER_request_packets), FLIGHT);
		assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), FLIGHT + again);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_probes), 1 + again);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
		assert_int_equal(sim_counter(s, 1, COUNTER_duplicate_requests), 0);
		assert_int_equal(sim_context(s, 0, 0)->rrc.retry_left, 7);
		/* probes after 1 ms, 2, 4; the simulation begins at 1 ms */
		assert_in_range(s->now_ns, 2 * MS << again, (2 * MS << again) + MS / 2);
		rig_end(s);
	}
}

static bool lose_all(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	(void)s, (void)from, (void)frame, (void)bytes, (void)arg;
	return true;
}

static void complete(struct sim *s, unsigned operations, uint64_t ns)
{
	uint64_t end_ns = s->now_ns + ns;
	struct cqe c;

	while (operations && s->now_ns < end_ns) {
		sim_step(s);
		while (sim_poll_cq(s, 0, &c)) {
			assert_int_equal(c.opcode, USER_RDMA_WRITE);
			operations--;
		}
	}
	assert_int_equal(operations, 0);
}

/* A dead link is replaced: each queue pair asks by one packet, at once, however rare its probes have become, and
 * the rest follows when that is acknowledged. Half of them know a round trip. */
TEST(recovery__a_replaced_link)
{
	enum { QPS = 16, PACKETS = 20, MEASURED = 800 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = {.opcode = USER_RDMA_WRITE, .remote = 1 << 20, .sges = 1};

	p.qps = QPS;
	p.timeout = 14;
	for (unsigned equal = 0; equal < 2; equal++) {
		uint64_t probes, again;
		struct sim *s;

		p.equal = equal;
		s = sim_create(&p);
		wr.sge[0].length = MEASURED * 1024;
		for (unsigned q = 0; q < QPS; q += 2)
			sim_post(s, 0, q, &wr);
		complete(s, QPS / 2, 10 * MS);
		for (unsigned q = 0; q < QPS; q++)
			assert_int_equal(!sim_context(s, 0, q)->rrc.srtt_ns, q % 2);
		wr.sge[0].length = PACKETS * 1024;
		s->tap = lose_all;
		for (unsigned q = 0; q < QPS; q++)
			sim_post(s, 0, q, &wr);
		sim_run(s, 25 * MS);
		s->tap = NULL;
		probes = sim_counter(s, 0, COUNTER_loss_probes);
		again = sim_counter(s, 0, COUNTER_retransmitted_packets);
		s->end[0].port.relinked++;
		complete(s, QPS, 200 * US);
		assert_int_equal(sim_counter(s, 0, COUNTER_relink_probes), QPS);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_probes), probes);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
		assert_true(sim_counter(s, 0, COUNTER_retransmitted_packets) - again <=
			    QPS * PACKETS);
		assert_int_equal(sim_counter(s, 1, COUNTER_duplicate_requests), 0);
		rig_end(s);
	}
}

TEST(recovery__no_probe_without_a_loss)
{
	struct sim *s = stream(400, (struct loss){0}, (struct sim_faults){0});

	assert_int_equal(sim_counter(s, 0, COUNTER_loss_probes), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_park_window), 0);
	rig_end(s);
}

/* Time in which others had the CPU is not taken for a loss; real losses are still detected. */
TEST(recovery__no_probe_for_others_having_the_cpu)
{
	for (uint64_t steal = 100 * US; steal <= 50 * MS; steal *= 5) {
		struct sim *s =
			stream_interrupted(200, (struct loss){0}, (struct sim_faults){0}, steal);

		assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
		rig_end(s);
		s = stream_interrupted(400, (struct loss){.number = 3000, .naks = 1},
				       (struct sim_faults){0}, steal);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_probes) +
					 sim_counter(s, 0, COUNTER_loss_timeouts),
				 1);
		rig_end(s);
	}
}

/* The window follows the rate of loss, so that go-back-N wastes little; and no loss waits for the
 * transport timer. */
TEST(recovery__what_go_back_n_wastes_is_bounded)
{
	static const struct {
		uint32_t loss_ppm, waste; /* per cent of the packets wanted */
	} row[] = {{1000, 25}, {10000, 60}};

	for (unsigned i = 0; i < 2; i++) {
		struct sim *s = stream(2000, (struct loss){0},
				       (struct sim_faults){.loss_ppm = row[i].loss_ppm});
		uint64_t wanted = sim_counter(s, 0, COUNTER_request_packets);

		assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
		assert_true(sim_counter(s, 0, COUNTER_retransmitted_packets) * 100 <
			    wanted * row[i].waste);
		rig_end(s);
	}
}

/* Takes the packets of one message that come, until none does for 3 ms; each must follow the one
 * before. Answers those that ask if `answer`. Returns the PSN behind them. */
static uint32_t take_all(struct sim *s, uint32_t psn, bool answer)
{
	struct rig_packet p;

	while (rig_recv(s, &p, 3 * MS)) {
		assert_int_equal(p.h.psn, psn);
		psn = psn_add(psn, 1);
		if (answer && p.h.ackreq)
			peer_ack(s, p.h.psn, !!(wire_opcodes[p.h.opcode].flags & WIRE_END));
	}
	return psn;
}

/* A peer without receives would throw away all that comes behind the first packet again. So each
 * RNR NAK halves what goes out at once, as a loss does; the rest goes when that is acknowledged. */
TEST_PEER(recovery__after_rnr_not_all_at_once)
{
	enum { PACKETS = 512 };
	const uint32_t end = PEER_PSN + PACKETS;
	uint32_t most = PACKETS / 2, interval;

	interval = s->node[0].hca->engines[0].settings.ack_interval;
	peer_post(s, USER_SEND, PACKETS * PEER_MTU);
	assert_int_equal(take_all(s, PEER_PSN, false), end);
	for (unsigned i = 0; i < 6; i++) {
		uint32_t n;

		peer_rnr(s, PEER_PSN, 1, 0);
		n = psn_sub(take_all(s, PEER_PSN, false), PEER_PSN);
		assert_in_range(n, most, most + interval);
		most = RTE_MAX(most / 2, 32u);
	}
	peer_rnr(s, PEER_PSN, 1, 0);
	assert_int_equal(take_all(s, PEER_PSN, true), end);
	rig_expect_cqe(s, USER_SEND, 0, 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
}

/* The packets of one message that come within 100 us: from `psn` on, without a gap. Returns how
 * many. */
static uint32_t count_again(struct sim *s, uint32_t psn)
{
	struct rig_packet p;
	uint32_t n = 0;

	while (rig_recv(s, &p, 100 * US))
		assert_int_equal(p.h.psn, psn_add(psn, n++));
	return n;
}

/* Loses the first of many packets and acknowledges all of them before they are sent again: the peer
 * has kept them. */
static void show_that_all_is_kept(struct sim *s, uint32_t packets)
{
	struct rig_packet p;

	peer_post(s, USER_RDMA_WRITE, packets * PEER_MTU);
	assert_int_equal(take_all(s, PEER_PSN, false), PEER_PSN + packets);
	peer_nak(s, PEER_PSN, AETH_NAK_SEQUENCE, 0);
	assert_true(rig_recv(s, &p, MS));
	peer_ack(s, PEER_PSN + packets - 1, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	while (rig_recv(s, &p, 100 * US))
		;
}

/* What an acknowledgement proves to be there is not sent again, nor with the next loss. */
TEST_PEER(recovery__a_peer_that_keeps_gets_only_what_is_missing)
{
	enum { PACKETS = 500 };
	const uint32_t psn = PEER_PSN + PACKETS;

	show_that_all_is_kept(s, PACKETS);
	peer_post(s, USER_RDMA_WRITE, 30 * PEER_MTU);
	assert_int_equal(take_all(s, psn, false), psn + 30);
	peer_nak(s, psn + 5, AETH_NAK_SEQUENCE, 1);
	assert_int_equal(count_again(s, psn + 5), 1);
	peer_ack(s, psn + 19, 1); /* the next one is missing, too */
	assert_int_equal(count_again(s, psn + 20), 1);
	peer_nak(s, psn + 20, AETH_NAK_SEQUENCE, 1); /* says no more than that */
	assert_int_equal(count_again(s, psn + 20), 0);
	peer_ack(s, psn + 29, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 1 * SIM_STRIDE);
}

/* If the peer asks for one packet after the other, everything goes. */
TEST_PEER(recovery__a_peer_that_keeps_no_more_gets_everything)
{
	enum { PACKETS = 500 };
	const uint32_t psn = PEER_PSN + PACKETS;
	uint32_t i = 0, n;

	show_that_all_is_kept(s, PACKETS);
	peer_post(s, USER_RDMA_WRITE, 30 * PEER_MTU);
	assert_int_equal(take_all(s, psn, false), psn + 30);
	do {
		peer_nak(s, psn + i, AETH_NAK_SEQUENCE, 1);
		n = count_again(s, psn + i);
		i++;
	} while (n == 1 && i < 20);
	assert_in_range(i, 2, 6);
	assert_int_equal(n, 30 - (i - 1));
	peer_ack(s, psn + 29, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 1 * SIM_STRIDE);
}

/* New packets follow what it keeps: as many as the window has, from the repetition on. */
TEST_PEER(recovery__new_packets_follow_what_a_peer_keeps)
{
	enum { PACKETS = 500, WINDOW = 32 };
	const uint32_t psn = PEER_PSN + PACKETS;

	show_that_all_is_kept(s, PACKETS);
	peer_post(s, USER_RDMA_WRITE, 30 * PEER_MTU);
	assert_int_equal(take_all(s, psn, false), psn + 30);
	peer_nak(s, psn + 5, AETH_NAK_SEQUENCE, 1);
	assert_int_equal(count_again(s, psn + 5), 1);
	peer_post(s, USER_RDMA_WRITE, 100 * PEER_MTU);
	assert_int_equal(count_again(s, psn + 30), WINDOW);
	peer_ack(s, psn + 30 + WINDOW - 1, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 1 * SIM_STRIDE);
	assert_int_equal(take_all(s, psn + 30 + WINDOW, true), psn + 130);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 2 * SIM_STRIDE);
}

/* What is sent again and lost again comes a third time after two round trips; then it takes longer.
 * A READ, all of whose responses would come again, does not come so soon. */
TEST_PEER(recovery__a_peer_that_keeps_is_probed_soon)
{
	enum { PACKETS = 500 };
	const uint32_t psn = PEER_PSN + PACKETS;
	struct rig_packet p;

	show_that_all_is_kept(s, PACKETS);
	peer_post(s, USER_RDMA_WRITE, 30 * PEER_MTU);
	assert_int_equal(take_all(s, psn, false), psn + 30);
	peer_nak(s, psn + 5, AETH_NAK_SEQUENCE, 1);
	assert_true(rig_recv(s, &p, 10 * US));
	peer_ack(s, psn + 19, 1); /* shows the round trip, and the next one missing */
	for (unsigned i = 0; i < 2; i++) {
		assert_true(rig_recv(s, &p, 30 * US));
		assert_int_equal(p.h.psn, psn + 20);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_probes), i);
	}
	assert_false(rig_recv(s, &p, 30 * US));
	peer_post(s, USER_RDMA_READ, PEER_MTU);
	assert_true(rig_recv(s, &p, 10 * US));
	peer_ack(s, psn + 29, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 1 * SIM_STRIDE);
	assert_false(rig_recv(s, &p, 30 * US));
	peer_read_responses(s, psn + 30, PEER_MTU, 0, 0, 3);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 2 * SIM_STRIDE);
}

/* The setting holds from the next loss on. */
TEST_PEER(recovery__a_peer_that_keeps_gets_everything_by_the_standard)
{
	enum { PACKETS = 500 };
	const uint32_t psn = PEER_PSN + PACKETS;

	show_that_all_is_kept(s, PACKETS);
	s->node[0].hca->engines[0].settings.loss_recovery = LOSS_RECOVERY_STANDARD;
	peer_post(s, USER_RDMA_WRITE, 30 * PEER_MTU);
	assert_int_equal(take_all(s, psn, false), psn + 30);
	peer_nak(s, psn + 5, AETH_NAK_SEQUENCE, 1);
	assert_int_equal(count_again(s, psn + 5), 25);
	peer_ack(s, psn + 29, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 1 * SIM_STRIDE);
}
