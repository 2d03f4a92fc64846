/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_WQE_H
#define HOST_ABI_WQE_H
/*
 * Work queue entries: units of 16 bytes, little-endian.
 *
 * Send:    next · [raddr] · [atomic] · [ud (3 units)] · inline | data …
 * Local:   next · [bind | register · pages …]: BIND_MW, REG_MR; LOCAL_INV is next alone
 * Receive: next · data (at most 30) · one unit of zeros. A receive queue has entries of one fixed
 * stride.
 * Shared receive queue: the same, and next.imm is a tag of the client's choice. Several queue pairs
 * take from it, so descriptors complete out of order: the daemon copies one when a queue pair takes
 * it, and its completion returns the tag as wqe_offset. While n descriptors are posted and not
 * completed, at most n places of the ring are in use.
 */
#include <stdint.h>
#include <assert.h>

/* The service of a queue pair. */
enum qp_service { SERVICE_RC, SERVICE_UC, SERVICE_UD };

/* The properties of an operation in user_opcodes.def: its services ... */
enum user_service {
	USER_ON_RC = 1 << SERVICE_RC,
	USER_ON_UC = 1 << SERVICE_UC,
	USER_ON_UD = 1 << SERVICE_UD,
};

/* ... and what it is like. */
enum user_trait {
	USER_RADDR = 1 << 0,	     /* has a raddr unit */
	USER_OPERANDS = 1 << 1,	     /* has an atomic unit; without USER_SCATTERS it has no data */
	USER_LOCAL = 1 << 2,	     /* has the units of a local operation; sends nothing */
	USER_SCATTERS = 1 << 3,	     /* its data entries take what the peer answers; never inline */
	USER_EIGHT_BYTES = 1 << 4,   /* moves just eight bytes, even if its entries hold more */
	USER_ANSWERED = 1 << 5,	     /* the peer answers each with a separate response, for which
				      * it has a bounded number of resources */
	USER_TAKES_RECEIVE = 1 << 6, /* consumes a receive descriptor of the peer */
};

/* User opcodes (WQE, doorbell, CQE). */
enum user_opcode {
	USER_NOP = 0x00,
#define OPERATION(id, code, services, traits, packets, wr, wc, call) USER_##id = code,
#define COMPLETION(id, code, wc, flags)				     USER_##id = code,
#include "host-abi/user_opcodes.def"
	USER_OPCODES = 32,   /* all are below */
	USER_INVALID = 0xff, /* error CQE */
};

struct wqe_next {
	uint32_t nda_nop; /* 31:6 next descriptor's offset in the queue, 64-byte granules · 4:0 its
			     opcode */
	uint32_t ee_nds;  /* 7 D: next rings its own doorbell · 6 F: next fences · 5:0 its size,
			     units; 0: end of chain */
	uint32_t flags;	  /* WQE_* below */
	uint32_t imm;	  /* immediate data as on the wire, or the key to invalidate; in a
			     shared receive queue: the tag */
};
#define WQE_NEXT_NDA_SHIFT 6
#define WQE_NEXT_OP_MASK   (USER_OPCODES - 1u)
#define WQE_NEXT_D	   (1u << 7)
#define WQE_NEXT_F	   (1u << 6)
#define WQE_NEXT_NDS_MASK  0x3fu
#define WQE_SIGNALED	   (1u << 3) /* this WQE updates the CQ */
/* Bit 2, the event bit, is ignored: a completion raises an event when its CQ is armed. */
#define WQE_SOLICITED (1u << 1)

struct wqe_raddr {
	uint64_t addr;
	uint32_t rkey;
	uint32_t reserved;
};

struct wqe_atomic {
	uint64_t swap_add;
	uint64_t compare;
};

/* Three units. MACs as six bytes in wire order. All-zero dmac: refused; an address handle
 * is resolved when it is made (CONTROL_RESOLVE). */
struct wqe_ud {
	uint8_t port;
	uint8_t gid_index;
	uint8_t is_ipv6; /* 0: dip[12..15] is the IPv4 destination, dip is v4-mapped */
	uint8_t traffic_class;
	uint8_t dmac[6];
	uint8_t hop_limit;
	uint8_t sl; /* the lower three bits are the 802.1p priority */
	uint8_t reserved0[4];
	uint8_t dip[16]; /* destination GID */
	uint32_t qpn;	 /* destination */
	uint32_t qkey;
	uint32_t flow_label;
	uint32_t reserved1;
};

struct wqe_inline {
	uint32_t length; /* bit 31 set · 30:0 bytes; they follow at once, the whole padded to units
			  */
};
#define WQE_INLINE (1u << 31)

struct wqe_data {
	uint32_t length; /* bit 31 clear; 0 is a zero-length entry */
	uint32_t lkey;
	uint64_t addr;
};

/*
 * Two units: binds a memory window (ours, as are those of LOCAL_INV and REG_MR). The client chooses
 * the key's tag (7:0); the rest of the key is the daemon's. RC and UC.
 */
struct wqe_bind {
	uint32_t key;	   /* of the window, with its new tag */
	uint32_t lkey;	   /* of the region, which must allow windows; ignored if length is 0 */
	uint32_t access;   /* enum access_flags: remote rights; type 2: ACCESS_ZERO_BASED, too */
	uint32_t reserved; /* 0 */
	uint64_t addr;	   /* first byte, as an address of the region */
	uint64_t length;   /* bytes; 0, type 1 only: bound to nothing */
};

/*
 * Two units and the pages' addresses, the last unit padded: registers pages of a region that allows
 * windows as a separate region. Its first byte is iova % page size into the first page.
 */
struct wqe_register {
	uint32_t key;	  /* as ALLOC_MR gave it, with its new tag */
	uint32_t lkey;	  /* of the region that contains the pages */
	uint32_t access;  /* enum access_flags: local write, remote rights */
	uint8_t log_page; /* 12..30 */
	uint8_t reserved; /* 0 */
	uint16_t pages;	  /* 1..WQE_REGISTER_PAGES */
	uint64_t iova;
	uint64_t length; /* bytes; needs exactly that many pages */
	uint64_t page[]; /* addresses in that region, multiples of the page size, in any order */
};
#define WQE_REGISTER_PAGES 120

static_assert(sizeof(struct wqe_bind) == 32, "two units");
static_assert(sizeof(struct wqe_register) == 32, "two units");
static_assert(16 + sizeof(struct wqe_register) + WQE_REGISTER_PAGES * 8 <= 63 * 16,
	      "the longest fits a descriptor");
static_assert(sizeof(struct wqe_next) == 16 && sizeof(struct wqe_raddr) == 16, "one unit");
static_assert(sizeof(struct wqe_atomic) == 16 && sizeof(struct wqe_data) == 16, "one unit");
static_assert(sizeof(struct wqe_ud) == 48, "three units");

#endif
