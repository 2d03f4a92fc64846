/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIRT_TO_PHYS_V2P_H
#define VIRT_TO_PHYS_V2P_H
/*
 * VirtToPhys: checks an access (key, protection domain, rights, bounds, in the seed's order: seed
 * 004, seed 000 7.1.3) and translates it. "Physical address" means the address in the daemon.
 *
 * Entries change through the CEU (control thread). Only those of memory windows and fast-registered
 * regions (MPT_CHANGES) change on the data path, too: windows.c. Look-ups run on any lcore without
 * locks. An address that v2p_map() gave is good until the end of the current poll of the stage:
 * invalidation waits for every lcore to pass a quiescent state before the memory goes away.
 *
 * A key, lkey == rkey:
 *   31:24   tag. Whoever binds a window or registers fast chooses it anew (MPT_KEY_TAG); of other
 *           keys it is random
 *   23:n    random, differs with each reuse of the index; at least four bits (n <= 20)
 *   n-1:0   index of the MPT entry
 * All but the tag are the entry's for as long as its owner has it (mpt_entry.owned).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rte_branch_prediction.h>
#include "base/counters.h"
#include "host-abi/control.h"

enum v2p_state {
	V2P_SUCCESS = 0,
	V2P_LENGTH_ERR = 1,
	V2P_KEY_ERR = 2,
	V2P_FLAGS_ERR = 3,
	V2P_PD_ERR = 4,
	V2P_PENDING = 5 /* the entry is not there yet: the same request again at the next poll */
};

/* Who asks: the channels of the request scheduler (seed 004 5.2.2), the numbers of REQ_SOUR. */
enum v2p_channel {
	V2P_CEU,
	V2P_DBP_WQE,
	V2P_WP_WQE,
	V2P_WP_DATA,
	V2P_RTC_CQ,
	V2P_RRC_DATA,
	V2P_EE_RQ_WQE,
	V2P_EE_DATA,
	V2P_CHANNELS
};

/* What an access needs: the bits of enum access_flags, or to read one's own memory, which every
 * entry allows but a window's: that is there for peers alone. */
#define V2P_LOCAL_READ 0x100u

#define MPT_KEY_TAG	  0xff000000u
#define MPT_KEY_TAG_SHIFT 24

/* Pages of a fast registration. */
#define V2P_LOG_PAGE_MIN 12
#define V2P_LOG_PAGE_MAX 30

/*
 * MPT entry, 64 bytes. The memory of an entry here is one contiguous piece of a client's region
 * ("coalesced": one page as large as the entry); the MTT serves entries that are not.
 *
 * Of an entry with MPT_CHANGES, the fields marked (c) change on the data path; its `access` is 0,
 * so that no look-up takes the short way, and `rights` says what it allows.
 */
struct mpt_entry {
	uint32_t key; /* 0: invalid; atomic: written last when made, first when invalidated; (c) */
	uint32_t pd;
	uint32_t access; /* enum access_flags and V2P_LOCAL_READ */
	uint32_t flags;	 /* MPT_* */
	uint64_t start;	 /* first virtual address; (c) */
	uint64_t length; /* bytes; (c) */
	uint8_t *phys;	 /* daemon address of `start`; NULL: through the MTT; (c) */
	uint32_t mtt_first;
	uint32_t owned;	  /* the key from SW2HW_MPT to HW2SW_MPT, also while `key` is 0; control
			     thread; atomic */
	uint32_t version; /* atomic: grows with each change, odd in the midst of one, never begins
			     anew: v2p_entry_replace() */
	uint32_t parent;  /* (c) key of the region whose memory it is; 0: none */
	uint32_t qpn;	  /* (c) type 2: the queue pair that it is bound to */
	uint16_t rights;  /* (c) enum access_flags and V2P_LOCAL_READ */
	uint8_t log_page;
	uint8_t reserved;
};

/* A peer may invalidate it by a SEND, and its owner by a local invalidate: windows of type 2,
 * fast-registered regions; not an ordinary region. */
#define MPT_INVALIDATE_REMOTE 1u
#define MPT_WINDOW_1	      2u /* memory window, type 1: any queue pair of its PD may use it */
#define MPT_WINDOW_2	      4u /* type 2B: the queue pair alone through which it was bound */
#define MPT_FAST	      8u /* region that a work request registers */
#define MPT_WINDOW	      (MPT_WINDOW_1 | MPT_WINDOW_2)
#define MPT_CHANGES	      (MPT_WINDOW | MPT_FAST)
#define MPT_FLAGS	      (MPT_INVALIDATE_REMOTE | MPT_CHANGES)

_Static_assert(sizeof(struct mpt_entry) == 64, "one cache line");

struct rte_memzone;

struct v2p {
	struct mpt_entry *mpt;
	uint32_t mpts; /* power of two */
	uint32_t mask;
	uint32_t *bound; /* by index, atomic: entries over the memory of that one, V2P_LEAVING */
	const struct rte_memzone *zone;
};
#define V2P_LEAVING (1u << 31) /* HW2SW_MPT has begun: nothing more is bound to it */

/* How one stage of one engine, or the control thread, asks; touched by its lcore alone. */
struct v2p_port {
	struct v2p *v2p;
	struct counters *counters; /* of whoever asks */
} __attribute__((aligned(64)));

/* Reserves the MPT (`mpts` entries, a power of two). 0 or -ENOMEM. */
int v2p_create(struct v2p *v, const char *name, uint32_t mpts, int socket);
void v2p_destroy(struct v2p *v);

/* CEU: SW2HW_MPT and HW2SW_MPT. The caller chose entry->key with index = key & mask, and quiesces
 * after invalidating. An entry with MPT_CHANGES begins invalid, without memory. 0, -EEXIST (index
 * in use), -EINVAL (wraps, empty key, unknown flags). */
int v2p_write_mpt(struct v2p *v, const struct mpt_entry *entry);
/* `key` as it was given to v2p_write_mpt(). 0 (also when it is invalid already), -ENOENT, -EBUSY:
 * windows or fast-registered regions lie over its memory. */
int v2p_invalidate_mpt(struct v2p *v, uint32_t key);

/* ---- whole entries: windows.c stands on these two alone ---- */

/*
 * A consistent copy of the entry at the key's index, whatever its tag. Any lcore. False: nobody
 * owns it, under these bits of the key below the tag, or it is just being changed.
 */
bool v2p_entry_get(const struct v2p *v, uint32_t key, struct mpt_entry *copy);

/*
 * Puts *entry, made from a copy of v2p_entry_get(), in its place, if nobody has changed it since
 * (entry->version says so) and its key is still `expected_key` (0: invalid). Readers see the old
 * entry, or none, or the new one; the fields marked (c) are written, no others. Any lcore; never
 * waits. False: somebody was faster; look again.
 */
bool v2p_entry_replace(struct v2p *v, uint32_t expected_key, const struct mpt_entry *entry);

/* ---- memory windows, fast registration: windows.c; data path, any lcore ---- */

/* A bind, as the work request says; pd, qpn are those of the queue pair. */
struct v2p_bind {
	uint32_t key;	 /* of the window, with its new tag */
	uint32_t parent; /* the region's; not looked at if length is 0 */
	uint32_t pd, qpn;
	uint32_t access; /* remote rights and ACCESS_ZERO_BASED (type 2) */
	uint64_t start;	 /* first byte, as an address of the region */
	uint64_t length; /* 0: type 1 is bound to nothing, its key invalid */
};

/*
 * Binds a window (IBTA 10.6.7.2). A window of type 1 may be bound to something, which it leaves;
 * one of type 2 must be invalid. V2P_SUCCESS; V2P_KEY_ERR: no such window or region, or another
 * work request was faster, or the region is about to go, or the window of type 2 is bound;
 * V2P_PD_ERR: window, region and queue pair are not of one PD; V2P_FLAGS_ERR: not among these
 * rights, the region allows no windows, is itself zero-based, or lacks local write for a remote
 * one; V2P_LENGTH_ERR: outside of the region, or type 2 without length.
 */
enum v2p_state v2p_bind(struct v2p *v, const struct v2p_bind *b);

/* A fast registration: `pages` pages of 2^log_page bytes of a registered region become a region of
 * their own. The first byte lies iova % page bytes into the first page. */
struct v2p_registration {
	uint32_t key; /* of the entry, with its new tag */
	uint32_t parent;
	uint32_t pd;
	uint32_t access;
	uint64_t iova, length;
	const uint64_t *page; /* addresses of the parent's; ascend without gaps, there being no MTT
			       */
	uint32_t pages;
	uint8_t log_page;
};

/* V2P_SUCCESS; V2P_KEY_ERR, V2P_PD_ERR, V2P_FLAGS_ERR: as for v2p_bind(), the entry being one that
 * must be invalid; V2P_LENGTH_ERR: a page outside of the parent or not aligned, not as many as the
 * length needs, no length, or the address wraps. */
enum v2p_state v2p_fast_register(struct v2p *v, const struct v2p_registration *r);

/*
 * SEND with invalidate, from the peer of the queue pair. The key is good for nothing from now on:
 * accesses under it get V2P_KEY_ERR (one that another lcore has begun may still end). The index
 * stays with the control side until HW2SW_MPT. V2P_SUCCESS; V2P_KEY_ERR: no such key, or another
 * was faster; V2P_PD_ERR: of another PD, or bound to another queue pair; V2P_FLAGS_ERR: it does not
 * allow that.
 */
enum v2p_state v2p_invalidate_remote(struct v2p *v, uint32_t pd, uint32_t qpn, uint32_t key);
/* The same by a work request of the owner's. */
enum v2p_state v2p_invalidate_local(struct v2p *v, uint32_t pd, uint32_t qpn, uint32_t key);

/* v2p_map() for an entry with MPT_CHANGES. */
enum v2p_state v2p_map_changing(const struct v2p *v, uint32_t pd, uint32_t qpn, uint32_t key,
	uint64_t va, uint64_t length, uint32_t access, uint8_t **addr, uint64_t *run);

/* May a work request that stands before an access in its queue still make the key a good one? Then
 * it is not to be refused ahead of its turn. */
bool v2p_may_become(const struct v2p *v, uint32_t key);

/* Counts a refusal by its name. */
void v2p_count_error(struct counters *c, enum v2p_state s);

/*
 * Checks the access [va, va + length) under `key` for someone of protection domain `pd` who needs
 * `access`; on success *addr is the daemon's address of va and *run how many bytes from there are
 * contiguous (length, or less at a page border: ask again from va + *run). Zero length: no check at
 * all, *addr NULL (C9-88). V2P_PENDING: nothing is known yet, the same request at the next poll.
 * `qpn`: a peer's access, through that queue pair.
 */
static inline enum v2p_state v2p_map_remote(struct v2p_port *port, enum v2p_channel channel,
	uint32_t pd, uint32_t qpn, uint32_t key, uint64_t va, uint64_t length, uint32_t access,
	uint8_t **addr, uint64_t *run)
{
	const struct v2p *v = port->v2p;
	const struct mpt_entry *m = &v->mpt[key & v->mask];
	uint64_t offset = va - m->start;

	*addr = NULL;
	*run = length;
	if (length == 0)
		return V2P_SUCCESS;
	count(port->counters, (enum counter)(COUNTER_v2p_ceu + channel));
	if (unlikely(__atomic_load_n(&m->key, __ATOMIC_ACQUIRE) != key || key == 0))
		return V2P_KEY_ERR;
	if (unlikely(m->pd != pd))
		return V2P_PD_ERR;
	if (unlikely((m->access & access) != access))
		return m->flags & MPT_CHANGES
			       ? v2p_map_changing(v, pd, qpn, key, va, length, access, addr, run)
			       : V2P_FLAGS_ERR;
	if (unlikely(offset > m->length || length > m->length - offset))
		return V2P_LENGTH_ERR;
	*addr = m->phys + offset;
	return V2P_SUCCESS;
}

/* The same for an access to one's own memory. */
static inline enum v2p_state v2p_map(struct v2p_port *port, enum v2p_channel channel, uint32_t pd,
	uint32_t key, uint64_t va, uint64_t length, uint32_t access, uint8_t **addr, uint64_t *run)
{
	return v2p_map_remote(port, channel, pd, 0, key, va, length, access, addr, run);
}

static inline void v2p_prefetch(const struct v2p *v, uint32_t key)
{
	__builtin_prefetch(&v->mpt[key & v->mask]);
}

#endif
