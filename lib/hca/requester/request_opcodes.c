/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins the table of user operations, which does not know the wire, with the BTH opcodes.
 * Constant. */
#include "request_opcodes.h"
#include "wire/opcode.h"

const struct request_opcodes request_opcodes[USER_OPCODES] = {
#define MESSAGE(first_, middle_, last_, only_)                                                     \
	.first = WIRE_RC_##first_, .middle = WIRE_RC_##middle_, .last = WIRE_RC_##last_,           \
	.only = WIRE_RC_##only_
#define REQUEST(one, kind)					     .only = WIRE_RC_##one, .answer = WIRE_KIND_##kind
#define NO_PACKETS						     .only = 0
#define OPERATION(id, code, services, traits, packets, wr, wc, call) [USER_##id] = {packets},
#include "host-abi/user_opcodes.def"
};
