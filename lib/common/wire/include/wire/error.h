/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_ERROR_H
#define WIRE_ERROR_H
/*
 * The two enums of what can go wrong on the wire:
 *  - enum wire_error: why a frame could not be parsed. Such a frame is dropped and counted;
 *  - enum wire_outcome: the protocol's verdict on a request or a work request. ONE table maps it to
 *    the AETH syndrome, the CQE syndrome, and the fate of the queue pair.
 */
#include <stdbool.h>
#include <stdint.h>
#include "host-abi/cqe.h"

/* Why wire_parse_frame() or wire_read_transport() refused a packet. */
enum wire_error {
	WIRE_OK,	    /* parsed */
	WIRE_ERR_TRUNCATED, /* the bytes end before the headers do */
	WIRE_ERR_NOT_ROCE,  /* another Ethernet type, IP protocol or UDP port */
	WIRE_ERR_VERSION,   /* IP version wrong, or an IPv4 header with options */
	WIRE_ERR_FRAGMENT,  /* an IP fragment */
	WIRE_ERR_LENGTH,    /* lengths of frame, IP, UDP and pad contradict each other */
	WIRE_ERR_CHECKSUM,  /* IPv4 header checksum, or a UDP checksum that is not 0, is wrong */
	WIRE_ERR_OPCODE,    /* BTH opcode not defined; the BTH has been parsed (rule C9-84) */
	WIRE_ERR_TVER,	    /* transport header version not 0; the BTH has been parsed */
	WIRE_ERR_COUNT,
};

/* Name for logs and tests, "wire_error?" when out of range; static storage. */
const char *wire_error_name(enum wire_error error);

/* The protocol's verdict. Remote ones are the responder's, reported by its NAK. */
enum wire_outcome {
	OUTCOME_OK,
	OUTCOME_RNR,		  /* no receive WQE now: try again later */
	OUTCOME_SEQUENCE,	  /* PSN ahead of the expected one: retransmit from there */
	OUTCOME_INVALID_REQUEST,  /* malformed, not allowed, or longer than the receive buffers */
	OUTCOME_REMOTE_ACCESS,	  /* R_Key, bounds, rights, PD */
	OUTCOME_REMOTE_OPERATION, /* the responder failed while executing */
	OUTCOME_LOCAL_LENGTH,	/* a message longer than its own local buffers or the port allow */
	OUTCOME_LOCAL_QP_OP,	/* the WQE itself is wrong, or the engine failed */
	OUTCOME_LOCAL_PROT,	/* L_Key, bounds, rights, PD of a local buffer */
	OUTCOME_LOCAL_ACCESS,	/* own memory failed a remote operation (C10 local access) */
	OUTCOME_FLUSH,		/* flushed because the QP is in ERR or SQE */
	OUTCOME_RETRY_EXC,	/* the peer did not answer retry_cnt + 1 times */
	OUTCOME_RNR_RETRY_EXC,	/* the peer was not ready rnr_retry + 1 times */
	OUTCOME_BAD_RESP,	/* a response that fits no request */
	OUTCOME_REMOTE_ABORTED, /* the peer aborted the operation */
	OUTCOME_MW_BIND,	/* a memory window could not be bound */
	OUTCOME_BAD_INVALIDATE, /* the key in a SEND must not be invalidated */
	OUTCOME_COUNT,
};

/* The value of wire_outcome_info.aeth_syndrome of outcomes without a NAK. */
enum { WIRE_NO_SYNDROME = 0xff };

struct wire_outcome_info {
	uint8_t aeth_syndrome;	   /* the responder's AETH, or WIRE_NO_SYNDROME. RNR: OR in the
				    * timer code. OK: ACK with invalid credits, replace 4:0 */
	uint8_t cqe_syndrome;	   /* enum cqe_syndrome of the requester's CQE; OK for outcomes that
				    * are retried */
	uint8_t recv_cqe_syndrome; /* of the responder's receive WQE if one was taken; OK: none */
	bool responder_fails;	   /* the responder's QP goes to ERR (RC; UC and UD drop) */
};

/* Indexed by enum wire_outcome. Read only. */
extern const struct wire_outcome_info wire_outcomes[OUTCOME_COUNT];

/*
 * What a received NAK means to the requester. nak_code: low 5 bits of the syndrome (aeth.h).
 * Returns OUTCOME_SEQUENCE, OUTCOME_INVALID_REQUEST, OUTCOME_REMOTE_ACCESS,
 * OUTCOME_REMOTE_OPERATION, or OUTCOME_BAD_RESP for a code unknown to RC (rule C9-120: drop the
 * packet).
 */
enum wire_outcome wire_outcome_of_nak(uint8_t nak_code);

#endif
