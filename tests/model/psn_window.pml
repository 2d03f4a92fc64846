/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PSN window of a reliable connection: a requester, a responder that keeps a packet that came
 * early, and a wire that loses and repeats. SENDs of one packet each, any number of them; credits,
 * RNR, go-back-N. All interleavings are looked at: messages arrive once, in order, and both ends
 * come to rest with everything delivered, whenever the client stops posting.
 *
 * EDGE(machine, from, to) names the transition of the code's table that a step stands for;
 * OUTSIDE(machine, from, to) one that the model leaves out, OUTSIDE_STATE(machine, state) all from
 * and to a state. tests/model/check sees that each row of the tables is one of these, and that
 * nothing else is named.
 *
 * PSNs, and MSN, SSN and LSN with them, wrap at PSNS instead of 2^24. Both ends compare them only
 * by SAME, AHEAD and BEFORE, which depend on differences modulo PSNS. The model itself knows which
 * message each number means and asserts, wherever two are compared, that they lie so near to each
 * other that the result is that of numbers which never wrap: EXACT() and tests/model/README.md.
 * To need few states it counts from the message that the responder expects, which is always HERE:
 * with each delivery all numbers fall by one.
 */
#ifndef PSNS
#define PSNS 4
#endif
#ifndef WINDOW
#define WINDOW (PSNS / 2) /* wire/psn.h: PSN_WINDOW */
#endif
#define HALF	 (PSNS / 2)
#define HERE	 (2 * PSNS)
#define WIRE	 2 /* packets on their way in one direction */
#define RECEIVES 2 /* that the responder's client has posted at most */

#define AHEAD(a, b)  (((a) - (b) + 4 * PSNS) % PSNS) /* how far a is ahead of b, modulo PSNS */
#define BEFORE(a, b) (AHEAD(a, b) >= HALF)	     /* psn_before() */
#define SAME(a, b)   (AHEAD(a, b) == 0)
#define EXACT(a, b)  ((a) + HALF >= (b) && (a) < (b) + HALF) /* BEFORE(a, b) is a < b */
#define EDGE(machine, from, to)
#define OUTSIDE(machine, from, to)
#define OUTSIDE_STATE(machine, state)

/* READs and atomics: their responses, and what waits behind them */
OUTSIDE_STATE(RRC, ACK_RELEASE_EXCEPTION)
OUTSIDE_STATE(RRC, ACK_LOSS_RETRANS)
OUTSIDE_STATE(RRC, READ_IMPLICIT_RELEASE)
OUTSIDE_STATE(RRC, READ_RETRANS)
OUTSIDE_STATE(RRC, READ_FETCH_ENTRY)
OUTSIDE_STATE(RRC, READ_SCATTER)
OUTSIDE_STATE(RRC, READ_UPDATE_ENTRY)
OUTSIDE_STATE(RRC, READ_RELEASE_ENTRY)
OUTSIDE_STATE(RRC, READ_FLUSH)
OUTSIDE_STATE(EE, ATOMIC)
/* WRITEs and READs take no receive and need no credits: they are easier than SENDs */
OUTSIDE_STATE(EE, VTP_CMD)
OUTSIDE_STATE(EE, WRITE_DATA)
OUTSIDE_STATE(EE, STORE_ADDR)
/* only between ends that have agreed on it: what is sent again is what go-back-N sends, with gaps */
OUTSIDE_STATE(RRC, SACK)
/* the end of a queue pair: retry counters do not run out here */
OUTSIDE_STATE(RRC, FLUSH)
OUTSIDE_STATE(RRC, BAD_REQ)
/* refusals for good, queue pairs that are gone, unreliable service, memory that comes later */
OUTSIDE(EE, FETCH_CXT, DROP)
OUTSIDE(EE, CHECK_REQUEST, ASYNC_ERROR)
OUTSIDE(EE, CHECK_PSN, ENTRY_FETCH)
OUTSIDE(EE, CXT_WB, DROP)
OUTSIDE(EE, DUPLICATE, DROP)
OUTSIDE(EE, DUPLICATE, IDLE)
OUTSIDE(EE, SEND_SCATTER, ASYNC_ERROR)
OUTSIDE(EE, SEND_SCATTER, IDLE)
OUTSIDE(EE, WQE_RELEASE, ASYNC_ERROR)
OUTSIDE(EE, WQE_RELEASE, IDLE)
/* messages of several packets */
OUTSIDE(EE, SEND_SCATTER, CXT_WB)

mtype = { ACK, NAK, RNR };

chan requests = [WIRE] of { byte };		  /* PSN */
chan responses = [WIRE] of { mtype, byte, byte }; /* kind, EPSN when it was sent, credits */

bool unlimited; /* the responder grants no credits, so none limit: a shared receive queue */
bool early;	/* Loss timers expire although nothing was lost; else when nothing else can happen */
bool over;	/* everything was sent and acknowledged */
hidden byte i, psn, msn, credits;
hidden mtype kind;

/* The requester's: oldest outstanding, next, go-back-N's next; LSN. MSN, SSN and LSN count messages,
 * so that the number of a message is its PSN, the SSN of the next one NPSN + 1. */
byte upsn = HERE, npsn = HERE, resend, lsn = HERE;
bool retransmitting, rnr_waiting, limited;
bool ended; /* its client posts nothing more */
/* The responder's; its EPSN is HERE, and so is its MSN. */
byte posted; /* receives that wait */
bool ack_pending, told_none, nak_sent;
bool kept; /* one packet that came early */
byte kept_psn;

inline put_request(number)
{
	if
	:: requests ! number
	:: skip /* lost */
	fi
}

inline put_response(what, granted)
{
	if
	:: responses ! what, HERE, (unlimited -> 0 : granted)
	:: skip
	fi
}

/* The responder has executed a message: what it expects then is HERE. */
inline advance()
{
	upsn--; npsn--;
	lsn = (unlimited -> HERE : lsn - 1);
	resend = (retransmitting -> resend - 1 : 0);
	kept_psn = (kept -> kept_psn - 1 : 0);
	for (i : 1 .. len(requests)) { requests ? psn; requests ! psn - 1 }
	for (i : 1 .. len(responses)) { responses ? kind, psn, credits; responses ! kind, psn - 1, credits }
}

/* ---- RequesterTransControl and RequesterRecvControl ---- */

proctype requester()
{
	do
	:: ended && upsn == npsn -> over = true; break
	:: !ended -> ended = true
	/* A new message: the window, the credits, no retransmission and no RNR wait in the way. */
	:: atomic {
		!ended && AHEAD(npsn, upsn) < WINDOW && !retransmitting && !rnr_waiting &&
			(unlimited || !BEFORE(lsn, npsn + 1) || !limited) && nfull(requests) ->
		limited = !unlimited && BEFORE(lsn, npsn + 1); /* C9-162: one without credit may be under way */
		put_request(npsn);
		npsn++
	   }
	/* Go-back-N, packet by packet; or the first one alone, to a peer that keeps what comes early. */
	:: atomic {
		retransmitting && !rnr_waiting && nfull(requests) ->
		put_request(resend);
		resend++;
		if
		:: retransmitting = !SAME(resend, npsn)
		:: SAME(resend, upsn + 1) -> retransmitting = false
		fi;
		resend = (retransmitting -> resend : 0)
	   }
	:: atomic {
		nempty(responses) ->
		if
		:: responses ? kind, msn, credits
		:: responses ? <kind, msn, credits> /* the wire repeats it */
		fi;
		psn = (kind == ACK -> msn - 1 : msn);
		assert(psn + PSNS >= npsn && psn < upsn + PSNS);
		EDGE(RRC, IDLE, RESP_CXT)
		if
		:: AHEAD(psn, upsn) >= AHEAD(npsn, upsn) -> /* not outstanding: a duplicate, a ghost */
			assert(psn < upsn || psn >= npsn);
			EDGE(RRC, RESP_CXT, SILENT_DROP)
			assert(EXACT(msn, npsn));
			if
			:: kind == ACK && !unlimited && !BEFORE(msn, npsn) -> lsn = msn + credits
			:: else
			fi
			EDGE(RRC, SILENT_DROP, IDLE)
		:: else ->
			if
			:: kind == ACK ->
				EDGE(RRC, RESP_CXT, ACK_RELEASE_NORMAL)
				upsn = psn + 1;
				lsn = (unlimited -> HERE : msn + credits);
				limited = limited && upsn != npsn;
				EDGE(RRC, ACK_RELEASE_NORMAL, IDLE)
			:: kind == NAK ->
				EDGE(RRC, RESP_CXT, NAK_IMPLICIT_RELEASE)
				upsn = psn;
				EDGE(RRC, NAK_IMPLICIT_RELEASE, NAK_RETRANS)
				retransmitting = !rnr_waiting || retransmitting;
				resend = upsn;
				EDGE(RRC, NAK_RETRANS, IDLE)
			:: kind == RNR ->
				EDGE(RRC, RESP_CXT, NAK_IMPLICIT_RELEASE)
				upsn = psn;
				EDGE(RRC, NAK_IMPLICIT_RELEASE, RESET_TIMER)
				EDGE(RRC, NAK_IMPLICIT_RELEASE, SILENT_DROP)
				rnr_waiting = true;
				retransmitting = false;
				EDGE(RRC, RESET_TIMER, IDLE)
			fi;
			/* What go-back-N had still to send may have been acknowledged. */
			if
			:: retransmitting && AHEAD(resend, upsn) > AHEAD(npsn, upsn) -> resend = upsn
			:: else
			fi;
			retransmitting = retransmitting && !SAME(resend, npsn);
			resend = (retransmitting -> resend : 0)
		fi
	   }
	:: atomic { /* the RNR timer: after any time, so after all else, too */
		rnr_waiting ->
		EDGE(RRC, IDLE, RNR_RETRANS)
		rnr_waiting = false;
		retransmitting = (upsn != npsn);
		resend = (retransmitting -> upsn : 0);
		EDGE(RRC, RNR_RETRANS, IDLE)
	   }
	:: atomic { /* the Loss timer, and a probe, which does the same */
		upsn != npsn && !rnr_waiting && !retransmitting && (timeout || early) ->
		EDGE(RRC, IDLE, TIMER_RETRANS)
		EDGE(RRC, IDLE, PROBE)
		resend = upsn;
		retransmitting = true;
		EDGE(RRC, TIMER_RETRANS, IDLE)
		EDGE(RRC, PROBE, IDLE)
	   }
	od
}

/* ---- ExecutionEngine and the responder's client ---- */

/* Posts receives; C9-155: one that was told of none hears of it. */
proctype client()
{
	do
	:: over -> break
	:: atomic {
		posted < RECEIVES ->
		posted++;
		ack_pending = ack_pending || told_none
	   }
	od
}

/* The end of a burst: acknowledgements may be late, and one for several packets. */
proctype acknowledger()
{
	do
	:: over -> break
	:: atomic {
		ack_pending && nfull(responses) ->
		ack_pending = false; told_none = (posted == 0);
		put_response(ACK, posted)
	   }
	od
}

proctype responder()
{
	do
	:: over -> break
	:: atomic {
		nfull(responses) && (nempty(requests) || kept && SAME(kept_psn, HERE)) ->
		if
		:: kept && SAME(kept_psn, HERE) -> psn = kept_psn; kept = false; kept_psn = 0
		:: else ->
			if
			:: requests ? psn
			:: requests ? <psn> /* the wire repeats it */
			fi
		fi;
		assert(EXACT(psn, HERE));
		EDGE(EE, FETCH_CXT, CHECK_PSN)
		if
		:: SAME(psn, HERE) && posted > 0 ->
			EDGE(EE, CHECK_PSN, CHECK_REQUEST)
			EDGE(EE, CHECK_REQUEST, ENTRY_FETCH)
			EDGE(EE, ENTRY_FETCH, SEND_SCATTER)
			EDGE(EE, SEND_SCATTER, WQE_RELEASE)
			EDGE(EE, WQE_RELEASE, CXT_WB)
			assert(psn == HERE); /* once, in order */
			posted--;
			nak_sent = false; ack_pending = true;
			EDGE(EE, CXT_WB, GEN_RESP)
			EDGE(EE, GEN_RESP, IDLE)
			advance()
		:: SAME(psn, HERE) && posted == 0 ->
			EDGE(EE, CHECK_PSN, CHECK_REQUEST)
			EDGE(EE, CHECK_REQUEST, ENTRY_FETCH)
			EDGE(EE, ENTRY_FETCH, ASYNC_ERROR)
			nak_sent = true; ack_pending = false;
			put_response(RNR, 0);
			EDGE(EE, ASYNC_ERROR, IDLE)
		:: !SAME(psn, HERE) && BEFORE(psn, HERE) ->
			EDGE(EE, CHECK_PSN, DUPLICATE)
			ack_pending = true;
			EDGE(EE, DUPLICATE, GEN_RESP)
			EDGE(EE, GEN_RESP, IDLE)
		:: !SAME(psn, HERE) && !BEFORE(psn, HERE) && !kept ->
			EDGE(EE, CHECK_PSN, IDLE)
			kept = true; kept_psn = psn;
			if
			:: !nak_sent ->
				nak_sent = true; ack_pending = false;
				put_response(NAK, 0)
			:: else
			fi
		:: !SAME(psn, HERE) && !BEFORE(psn, HERE) && !nak_sent ->
			EDGE(EE, CHECK_PSN, ASYNC_ERROR)
			nak_sent = true; ack_pending = false;
			put_response(NAK, 0);
			EDGE(EE, ASYNC_ERROR, IDLE)
		:: !SAME(psn, HERE) && !BEFORE(psn, HERE) && nak_sent ->
			EDGE(EE, CHECK_PSN, DROP)
			EDGE(EE, DROP, IDLE)
		fi
	   }
	:: atomic { kept -> kept = false; kept_psn = 0 } /* too old, or buffers are short */
	od;
	assert(upsn == HERE && npsn == HERE)
}

/* What both ends compare of their own, whether a comparison let a step happen or not. */
proctype watch()
{
end:	do
	:: !(upsn <= HERE && HERE <= npsn && npsn <= upsn + WINDOW &&
	     (!retransmitting || upsn <= resend && resend < npsn) &&
	     (!kept || HERE <= kept_psn && kept_psn < HERE + HALF) &&
	     (unlimited || EXACT(lsn, npsn + 1))) -> assert(false)
	od
}

init
{
	if
	:: unlimited = true
	:: unlimited = false
	fi;
	if
	:: early = true
	:: early = false
	fi;
	atomic { run requester(); run responder(); run acknowledger(); run client(); run watch() }
}
