/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_KIND_H
#define PATH_KIND_H
/* The operations that are measured: ONE table says what each is; nothing else distinguishes them.
 */
#include <stdbool.h>
#include <stdint.h>

enum kind {
	KIND_SEND,
	KIND_SEND_IMM,
	KIND_WRITE,
	KIND_WRITE_IMM,
	KIND_READ,
	KIND_CMP_SWAP,
	KIND_FETCH_ADD,
	KIND_ATOMIC_WRITE,
	KIND_FLUSH,
	KIND_COUNT
};

struct kind_info {
	const char *name;
	uint8_t opcode;	    /* enum softhca_wr_opcode */
	bool receives;	    /* takes a receive request at the other side */
	bool lands_in_recv; /* its data go where that receive request says, not to a remote address
			     */
	bool imm;	    /* carries immediate data */
	bool inbound;	    /* data flow to the requester: a READ or an atomic; or only an answer */
	bool atomic;	    /* changes one word at the other side and returns its old value */
	bool empty;	    /* moves no data */
	uint8_t bytes;	    /* the one size that it has, aligned to it, on RC; 0: any */
};

extern const struct kind_info kinds[KIND_COUNT];

#endif
