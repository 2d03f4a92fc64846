/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIRT_TO_PHYS_V2P_H
#define VIRT_TO_PHYS_V2P_H
/*
 * VirtToPhys: checks an access (key, protection domain, rights, bounds, in the seed's order: seed
 * 004, seed 000 7.1.3) and translates it. "Physical address" means the address in the daemon.
 *
 * Entries change through the CEU (control thread); a peer may only take the key of one that allows
 * it (v2p_invalidate_remote()). Look-ups run on any lcore without locks. An
 * address that v2p_map() gave is good until the end of the current poll of the stage: invalidation
 * waits for every lcore to pass a quiescent state before the memory goes away.
 *
 * A key: low bits index the MPT, the rest change with each reuse. lkey == rkey.
 */
#include <stdint.h>
#include <stdbool.h>
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

/* What an access needs; the bits of enum access_flags, and reading one's own memory, which needs
 * none. */
#define V2P_LOCAL_READ 0u

/*
 * MPT entry, 64 bytes. The memory of an entry here is one contiguous piece of a client's region
 * ("coalesced": one page as large as the entry); the MTT serves entries that are not.
 */
struct mpt_entry {
	uint32_t key; /* 0: invalid; atomic: written last when made, first when invalidated; the
			 data path may clear it */
	uint32_t pd;
	uint32_t access; /* enum access_flags */
	uint32_t flags;	 /* MPT_* */
	uint64_t start;	 /* first virtual address */
	uint64_t length; /* bytes */
	uint8_t *phys;	 /* daemon address of `start`; NULL: through the MTT */
	uint32_t mtt_first;
	uint32_t owned; /* the key from SW2HW_MPT to HW2SW_MPT, also while `key` is 0; control
			   thread */
	uint8_t log_page;
	uint8_t reserved[15];
};

/* A peer may invalidate it by a SEND: memory windows, fast-registered regions; not an ordinary
 * region. */
#define MPT_INVALIDATE_REMOTE 1u

_Static_assert(sizeof(struct mpt_entry) == 64, "one cache line");

struct rte_memzone;

struct v2p {
	struct mpt_entry *mpt;
	uint32_t mpts; /* power of two */
	uint32_t mask;
	const struct rte_memzone *zone;
};

/* How one stage of one engine, or the control thread, asks; touched by its lcore alone. */
struct v2p_port {
	struct v2p *v2p;
	struct counters *counters; /* of whoever asks */
} __attribute__((aligned(64)));

/* Reserves the MPT (`mpts` entries, a power of two). 0 or -ENOMEM. */
int v2p_create(struct v2p *v, const char *name, uint32_t mpts, int socket);
void v2p_destroy(struct v2p *v);

/* CEU: SW2HW_MPT and HW2SW_MPT. The caller chose entry->key with index = key & mask, and quiesces
 * after invalidating. 0, -EEXIST (index in use), -EINVAL (wraps, empty key, unknown flags). */
int v2p_write_mpt(struct v2p *v, const struct mpt_entry *entry);
/* 0 (also when a peer has invalidated it), -ENOENT. */
int v2p_invalidate_mpt(struct v2p *v, uint32_t key);

/*
 * Data path, any lcore: SEND with invalidate. The key is good for nothing from now on: accesses
 * under it get V2P_KEY_ERR (one that another lcore has begun may still end). The index stays with
 * the control side until HW2SW_MPT. V2P_SUCCESS; V2P_KEY_ERR: no such key, or another peer was
 * faster; V2P_PD_ERR; V2P_FLAGS_ERR: it does not allow that.
 */
enum v2p_state v2p_invalidate_remote(struct v2p *v, uint32_t pd, uint32_t key);

/* Counts a refusal by its name. */
void v2p_count_error(struct counters *c, enum v2p_state s);

/*
 * Checks the access [va, va + length) under `key` for someone of protection domain `pd` who needs
 * `access`; on success *addr is the daemon's address of va and *run how many bytes from there are
 * contiguous (length, or less at a page border: ask again from va + *run). Zero length: no check at
 * all, *addr NULL (C9-88). V2P_PENDING: nothing is known yet, the same request at the next poll.
 */
static inline enum v2p_state v2p_map(struct v2p_port *port, enum v2p_channel channel, uint32_t pd,
	uint32_t key, uint64_t va, uint64_t length, uint32_t access, uint8_t **addr, uint64_t *run)
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
		return V2P_FLAGS_ERR;
	if (unlikely(offset > m->length || length > m->length - offset))
		return V2P_LENGTH_ERR;
	*addr = m->phys + offset;
	return V2P_SUCCESS;
}

static inline void v2p_prefetch(const struct v2p *v, uint32_t key)
{
	__builtin_prefetch(&v->mpt[key & v->mask]);
}

#endif
