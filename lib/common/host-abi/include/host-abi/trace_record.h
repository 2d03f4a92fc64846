/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_TRACE_RECORD_H
#define HOST_ABI_TRACE_RECORD_H
/* What a module of the pipeline did with something of a queue pair, for `softhca trace`. */
#include <stdint.h>

struct trace_record {
	uint64_t tsc;	 /* when the module was polled ... */
	uint32_t cycles; /* ... and for how long, with all else that it took then */
	uint32_t psn;	 /* of a packet */
	uint32_t wqe;	 /* of a request: where its WQE lies in the send queue, bytes */
	uint16_t bytes;	 /* of a packet's payload */
	uint8_t module;	 /* enum module_id */
	uint8_t channel; /* enum channel_id: that it was taken from; of doorbells and frames: put
			    into */
	uint8_t kind;	 /* enum trace_kind */
	uint8_t opcode;	 /* of a packet: BTH's */
	uint8_t reserved[6];
};

enum trace_kind { TRACE_REQUEST, TRACE_PACKET, TRACE_RESPONSE, TRACE_TIMER };

#endif
