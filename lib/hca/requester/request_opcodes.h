/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQUEST_OPCODES_H
#define REQUESTER_REQUEST_OPCODES_H
/* The BTH opcodes that each user operation is sent with: those of RC. */
#include <stdint.h>
#include "host-abi/wqe.h"

struct request_opcodes {
	uint8_t first, middle, last; /* 0 for what goes in one packet */
	uint8_t only;
	uint8_t answer; /* enum wire_kind; of operations with their own response */
	uint8_t reserved[3];
};

/* By enum user_opcode. UC's and UD's are these plus a constant (IBTA 9.2). */
extern const struct request_opcodes request_opcodes[USER_OPCODES];

#endif
