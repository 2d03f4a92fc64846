/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PSN window of a reliable connection: a requester, a responder that keeps a packet that came
 * early, and a wire that loses and repeats. SENDs of one packet each; credits, RNR, go-back-N. All
 * interleavings are looked at: messages arrive once, in order, and both ends come to rest with
 * everything delivered.
 *
 * EDGE(machine, from, to) names the transition of the code's table that a step stands for;
 * OUTSIDE(machine, from, to) one that the model leaves out, OUTSIDE_STATE(machine, state) all from
 * and to a state. tests/model/check sees that each row of the tables is one of these, and that
 * nothing else is named.
 *
 * PSNs, and MSN, SSN and LSN with them, wrap at PSNS instead of 2^24.
 */
#define PSNS 4
#ifndef WINDOW
#define WINDOW (PSNS / 2) /* wire/psn.h: PSN_WINDOW */
#endif
#ifndef HALF
#define HALF (PSNS / 2)
#endif
#ifndef MESSAGES
#define MESSAGES 5 /* more than PSNS: all that wraps does */
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef REPEATS
#define REPEATS 1
#endif
#define PREMATURE 1 /* Loss timers that expire although nothing was lost */
#define WIRE	  2 /* packets on their way in one direction */
#define RECEIVES  2 /* that the responder's client has posted at most */

#define NEXT(p)	     (((p) + 1) % PSNS)
#define BACK(p)	     (((p) + PSNS - 1) % PSNS)
#define AHEAD(a, b)  (((a) - (b) + PSNS) % PSNS) /* how far a is ahead of b, modulo PSNS */
#define BEFORE(a, b) (AHEAD(a, b) >= HALF)	 /* psn_before() */
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

chan requests = [WIRE] of { byte, byte };		 /* PSN, message */
chan responses = [WIRE] of { mtype, byte, byte, byte }; /* kind, PSN, MSN, credits */

byte losses = LOSSES, repeats = REPEATS, premature = PREMATURE;
bool unlimited; /* the responder grants no credits, so none limit: a shared receive queue */
byte delivered; /* messages */
bool over;	/* everything was sent and acknowledged */

inline put_request(psn, message)
{
	if
	:: requests ! psn, message
	:: repeats > 0 && len(requests) + 1 < WIRE ->
		repeats--; requests ! psn, message; requests ! psn, message
	:: losses > 0 -> losses--
	fi
}

inline put_response(kind, psn, msn, credits)
{
	if
	:: responses ! kind, psn, msn, credits
	:: losses > 0 -> losses--
	fi
}

/* ---- RequesterTransControl and RequesterRecvControl ---- */

proctype requester()
{
	byte upsn = PSNS - 2, npsn = PSNS - 2; /* oldest outstanding; next */
	byte first = 0, next = 0;	       /* the messages with these PSNs */
	byte resend = PSNS - 2;		       /* go-back-N: next to retransmit */
	byte lsn = 0, ssn = 1;
	bool retransmitting, rnr_waiting, limited;
	byte psn, msn, credits;
	mtype kind;

idle:
	do
	:: first == MESSAGES -> over = true; break
	/* A new message: the window, the credits, no retransmission and no RNR wait in the way. */
	:: atomic {
		next < MESSAGES && AHEAD(npsn, upsn) < WINDOW && !retransmitting && !rnr_waiting &&
			(unlimited || !BEFORE(lsn, ssn) || !limited) && nfull(requests) ->
		limited = BEFORE(lsn, ssn); /* C9-162: one without credit may be under way */
		put_request(npsn, next);
		npsn = NEXT(npsn); next++; ssn = NEXT(ssn)
	   }
	/* Go-back-N, packet by packet; or the first one alone, to a peer that keeps what comes early. */
	:: atomic {
		retransmitting && !rnr_waiting && nfull(requests) ->
		put_request(resend, first + AHEAD(resend, upsn));
		resend = NEXT(resend);
		if
		:: retransmitting = (resend != npsn)
		:: resend == NEXT(upsn) -> retransmitting = false
		fi
	   }
	:: atomic {
		responses ? kind, psn, msn, credits ->
		EDGE(RRC, IDLE, RESP_CXT)
		if
		:: AHEAD(psn, upsn) >= AHEAD(npsn, upsn) -> /* not outstanding: a duplicate, a ghost */
			EDGE(RRC, RESP_CXT, SILENT_DROP)
			if
			:: kind == ACK && !BEFORE(msn, BACK(ssn)) -> lsn = (msn + credits) % PSNS
			:: else
			fi
			EDGE(RRC, SILENT_DROP, IDLE)
		:: else ->
			if
			:: kind == ACK ->
				EDGE(RRC, RESP_CXT, ACK_RELEASE_NORMAL)
				first = first + AHEAD(psn, upsn) + 1;
				upsn = NEXT(psn);
				lsn = (msn + credits) % PSNS;
				limited = limited && upsn != npsn;
				EDGE(RRC, ACK_RELEASE_NORMAL, IDLE)
			:: kind == NAK ->
				EDGE(RRC, RESP_CXT, NAK_IMPLICIT_RELEASE)
				first = first + AHEAD(psn, upsn);
				upsn = psn;
				EDGE(RRC, NAK_IMPLICIT_RELEASE, NAK_RETRANS)
				retransmitting = !rnr_waiting || retransmitting;
				resend = upsn;
				EDGE(RRC, NAK_RETRANS, IDLE)
			:: kind == RNR ->
				EDGE(RRC, RESP_CXT, NAK_IMPLICIT_RELEASE)
				first = first + AHEAD(psn, upsn);
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
			retransmitting = retransmitting && resend != npsn
		fi
	   }
	:: atomic { /* the RNR timer: after any time, so after all else, too */
		rnr_waiting ->
		EDGE(RRC, IDLE, RNR_RETRANS)
		rnr_waiting = false;
		resend = upsn;
		retransmitting = (upsn != npsn);
		EDGE(RRC, RNR_RETRANS, IDLE)
	   }
	:: atomic { /* the Loss timer, and a probe, which does the same */
		upsn != npsn && !rnr_waiting && !retransmitting &&
			(timeout || premature > 0) ->
		if
		:: premature > 0 -> premature--
		:: else
		fi;
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

byte epsn = PSNS - 2, msn_done = 0; /* EPSN, MSN */
byte posted;			    /* receives that wait */
bool ack_pending, told_none;

/* Posts receives; C9-155: one that was told of none hears of it. */
proctype client()
{
	byte all_posted;

	do
	:: all_posted == MESSAGES -> break
	:: atomic {
		posted < RECEIVES && all_posted < MESSAGES ->
		posted++; all_posted++;
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
		put_response(ACK, BACK(epsn), msn_done, posted)
	   }
	od
}

proctype responder()
{
	bool nak_sent, kept; /* kept: one packet that came early */
	byte psn, message, kept_psn, kept_message;

idle:
	do
	:: over -> break
	:: atomic {
		nfull(responses) && (nempty(requests) || kept && kept_psn == epsn) ->
		if
		:: kept && kept_psn == epsn -> psn = kept_psn; message = kept_message; kept = false
		:: else -> requests ? psn, message
		fi;
		EDGE(EE, FETCH_CXT, CHECK_PSN)
		if
		:: psn == epsn && posted > 0 ->
			EDGE(EE, CHECK_PSN, CHECK_REQUEST)
			EDGE(EE, CHECK_REQUEST, ENTRY_FETCH)
			EDGE(EE, ENTRY_FETCH, SEND_SCATTER)
			EDGE(EE, SEND_SCATTER, WQE_RELEASE)
			EDGE(EE, WQE_RELEASE, CXT_WB)
			assert(message == delivered); /* once, in order */

			delivered++; posted--;
			epsn = NEXT(epsn); msn_done = NEXT(msn_done);
			nak_sent = false; ack_pending = true;
			EDGE(EE, CXT_WB, GEN_RESP)
			EDGE(EE, GEN_RESP, IDLE)
		:: psn == epsn && posted == 0 ->
			EDGE(EE, CHECK_PSN, CHECK_REQUEST)
			EDGE(EE, CHECK_REQUEST, ENTRY_FETCH)
			EDGE(EE, ENTRY_FETCH, ASYNC_ERROR)
			nak_sent = true; ack_pending = false;
			put_response(RNR, epsn, msn_done, 0);
			EDGE(EE, ASYNC_ERROR, IDLE)
		:: psn != epsn && BEFORE(psn, epsn) ->
			EDGE(EE, CHECK_PSN, DUPLICATE)
			ack_pending = true;
			EDGE(EE, DUPLICATE, GEN_RESP)
			EDGE(EE, GEN_RESP, IDLE)
		:: psn != epsn && !BEFORE(psn, epsn) && !kept ->
			EDGE(EE, CHECK_PSN, IDLE)
			kept = true; kept_psn = psn; kept_message = message;
			if
			:: !nak_sent ->
				nak_sent = true; ack_pending = false;
				put_response(NAK, epsn, msn_done, 0)
			:: else
			fi
		:: psn != epsn && !BEFORE(psn, epsn) && !nak_sent ->
			EDGE(EE, CHECK_PSN, ASYNC_ERROR)
			nak_sent = true; ack_pending = false;
			put_response(NAK, epsn, msn_done, 0);
			EDGE(EE, ASYNC_ERROR, IDLE)
		:: psn != epsn && !BEFORE(psn, epsn) && nak_sent ->
			EDGE(EE, CHECK_PSN, DROP)
			EDGE(EE, DROP, IDLE)
		fi
	   }
	:: atomic { losses > 0 && kept -> losses--; kept = false } /* too old, or buffers are short */
	od
	assert(delivered == MESSAGES)
}

init
{
	if
	:: unlimited = true
	:: unlimited = false
	fi;
	atomic { run requester(); run responder(); run acknowledger(); run client() }
}
