/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_TRACE_RECORD_H
#define HOST_ABI_TRACE_RECORD_H
/* A record of `softhca trace`: what a module of the pipeline did with an element of a queue
 * pair. */
#include <stdint.h>

struct trace_record {
	uint64_t tsc;	 /* when the module was polled ... */
	uint32_t cycles; /* ... and for how long, including all else that it took */
	uint32_t psn;	 /* of a packet */
	uint32_t wqe; /* of a request, and of a packet that it has become: where its WQE lies in the
			    send queue, bytes; TRACE_NO_WQE */
	uint16_t bytes;	 /* of a packet's payload */
	uint8_t module;	 /* enum module_id */
	uint8_t channel; /* enum channel_id: that it was taken from; of doorbells and frames: put
			    into */
	uint8_t kind;	 /* enum trace_kind */
	uint8_t opcode;	 /* of a packet: BTH's */
	uint8_t reserved[2];
	uint32_t message_bytes; /* of a request; 0 until WQEParse has seen it */
};

#define TRACE_NO_WQE 0xffffffffu

enum trace_kind {
#define KIND(NAME, name) TRACE_##NAME,
#include "host-abi/capture_element.def"
};

#endif
