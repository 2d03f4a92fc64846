/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIRT_TO_PHYS_V2P_H
#define VIRT_TO_PHYS_V2P_H
/*
 * VirtToPhys: checks an access (key, protection domain, rights, bounds, in the order of
 * doc/virt-to-phys.md#match-info) and translates it. "Physical address" means the address in the
 * daemon.
 *
 * The entries of the MPT (one per key) and of the MTT (one per page of non-contiguous regions) are
 * in ICM memory, provided by MAP_ICM (tpt_metadata.h), behind one cache each (tpt_cache.h), shared
 * by all lcores.
 *
 * Entries are changed by the CEU (control thread). Only those of memory windows and fast-registered
 * regions (MPT_CHANGES) change on the data path, too: windows.c. Look-ups run on any lcore without
 * locks. An address returned by v2p_request() is valid until the end of the stage's current poll:
 * invalidation waits for every lcore to pass a quiescent state before the memory is freed. Nothing
 * on the data path waits for another lcore: what is held elsewhere is V2P_PENDING.
 *
 * A key, lkey == rkey:
 *   31:8+n   random, changes with each reuse of the index; at least four bits (n <= 20)
 *   7+n:8    index of the MPT entry
 *   7:0      tag. Chosen by each bind of a window and each fast registration (in programs by
 *            ibv_inc_rkey(), which changes only these bits); random in other keys
 * All but the tag belong to the entry while it has an owner (mpt_entry.owned). They are never all
 * zero, so that no tag makes the key 0, which no entry has.
 */
#include <stdint.h>
#include <stdbool.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include "base/counters.h"
#include "base/limits.h"
#include "host-abi/control.h"
#include "virt-to-phys/tpt_cache.h"
#include "virt-to-phys/tpt_metadata.h"

enum v2p_state {
	V2P_SUCCESS = 0,
	V2P_LENGTH_ERR = 1,
	V2P_KEY_ERR = 2,
	V2P_FLAGS_ERR = 3,
	V2P_PD_ERR = 4,
	V2P_PENDING = 5 /* the entry is not available yet: repeat the request at the next poll */
};

/* The requesters: the channels of the request scheduler (doc/virt-to-phys.md#request-scheduler),
 * with the numbers of REQ_SOUR. */
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

/* The rights that an access needs: bits of enum access_flags, or reading one's own memory, which
 * every entry allows except a window's: windows are for peers only. */
#define V2P_LOCAL_READ (1u << 14)
/* Of an entry alone: not one of MPT_NOT_PLAIN. */
#define V2P_PLAIN (1u << 15)
/* With them: the address is an offset into the region (RELATIVE ADDR; without it ABSOLUTE ADDR). */
#define V2P_RELATIVE (1u << 26)
/* Of a request only: the addresses are not needed. */
#define V2P_CHECK_ONLY (1u << 25)

/* An access that VirtToPhys is asked about. */
struct v2p_access {
	uint32_t pd;
	uint32_t key;
	uint32_t rights;     /* that it needs: bits of enum access_flags, V2P_* above */
	uint32_t qpn;	     /* of a peer's access, the queue pair; 0: to one's own memory */
	uint64_t va, length; /* bytes */
};

#define MPT_KEY_TAG ((1u << KEY_TAG_BITS) - 1)

/* Pages of an entry with MPT_PAGES. */
#define V2P_LOG_PAGE_MIN 12
#define V2P_LOG_PAGE_MAX 30

/*
 * MPT entry, 64 bytes. The memory of an entry is one contiguous range of a client's region
 * ("coalesced": one page as large as the entry; the design's PHYSICAL) or, with MPT_PAGES, the
 * pages named by the MTT.
 *
 * In an entry with MPT_CHANGES the fields marked (c) change on the data path; its `access` is 0, so
 * that no look-up takes the fast path, and `rights` holds its rights.
 */
struct mpt_entry {
	uint32_t key; /* 0: invalid */
	uint32_t pd;
	uint32_t access; /* enum access_flags, V2P_LOCAL_READ, V2P_PLAIN */
	uint32_t flags;	 /* MPT_*; MPT_PAGES and MPT_CLAIMED (c) */
	uint64_t start;	 /* first virtual address; (c) */
	uint64_t length; /* bytes; (c) */
	union {
		uint8_t *phys;	       /* daemon address of `start`; (c) */
		uint64_t first_offset; /* MPT_PAGES: of `start` in the first page; (c) */
	};
	uint32_t mtt_first; /* MPT_PAGES, MPT_OWNS_PAGES: first page's MTT entry; windows: (c) */
	uint32_t owned;	    /* the key from SW2HW_MPT to HW2SW_MPT, also while `key` is 0 */
	uint32_t version;   /* grows with each change: v2p_entry_replace() */
	uint32_t parent;    /* (c) key of the region that owns the memory; 0: none */
	uint32_t qpn;	    /* (c) type 2: the queue pair that bound it */
	uint16_t rights;    /* (c) enum access_flags and V2P_LOCAL_READ */
	uint8_t log_page;   /* MPT_PAGES: V2P_LOG_PAGE_MIN to V2P_LOG_PAGE_MAX; (c) */
	uint8_t pages_max;  /* MPT_FAST with MPT_OWNS_PAGES: its own MTT entries */
};

/* A peer may invalidate it by a SEND, and its owner by a local invalidate: windows of type 2,
 * fast-registered regions; not an ordinary region. */
#define MPT_INVALIDATE_REMOTE 1u
#define MPT_WINDOW_1	      2u	 /* memory window, type 1: for any queue pair of its PD */
#define MPT_WINDOW_2	      4u	 /* type 2B: only for the queue pair that bound it */
#define MPT_FAST	      8u	 /* region registered by a work request */
#define MPT_PAGES	      (1u << 16) /* through the MTT */
#define MPT_OWNS_PAGES	      (1u << 17) /* HW2SW_MPT invalidates its MTT entries, too */
#define MPT_CLAIMED	      (1u << 18) /* a fast registration is writing its MTT entries */
#define MPT_NULL	      (1u << 19) /* no memory: reads return zeroes, writes are discarded */
#define MPT_WINDOW	      (MPT_WINDOW_1 | MPT_WINDOW_2)
#define MPT_CHANGES	      (MPT_WINDOW | MPT_FAST)
#define MPT_FLAGS	      (MPT_INVALIDATE_REMOTE | MPT_CHANGES | MPT_PAGES | MPT_OWNS_PAGES | MPT_NULL)
/* Entries for which the checks of the fast path do not suffice. */
#define MPT_NOT_PLAIN (MPT_PAGES | MPT_CHANGES | MPT_NULL)

_Static_assert(sizeof(struct mpt_entry) == 64, "one cache line");

/* May a region that begins at virtual address `start` have these rights? What peers may write must
 * be writable for its owner (IBTA 10.6.3.1); a zero-based one begins at 0. */
static inline bool mpt_access_ok(uint32_t access, uint64_t start)
{
	const uint32_t writes = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
	const uint32_t rights = writes | ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_MW_BIND |
				ACCESS_ZERO_BASED | ACCESS_FLUSH_GLOBAL;

	if (access & ~rights || (access & ACCESS_ZERO_BASED && start))
		return false;
	return !(access & writes) || access & ACCESS_LOCAL_WRITE;
}

/* An MTT entry: the page's daemon address | MTT_PRESENT. */
#define MTT_PRESENT 1ull

/* The words of an entry against which an access is checked. */
enum {
	MPT_WORD_KEY_PD,
	MPT_WORD_ACCESS_FLAGS,
	MPT_WORD_START,
	MPT_WORD_LENGTH,
	MPT_WORD_PHYS,
	MPT_WORDS_CHECKED,
	MPT_WORDS = 8,
	MTT_WORDS = 4,
};

struct v2p;

enum v2p_slot_state { V2P_SLOT_IDLE, V2P_SLOT_MPT, V2P_SLOT_MTT, V2P_SLOT_DONE };

/* A channel's pending request: waits for its entry, for its pages, or to be collected. */
struct v2p_slot {
	uint8_t state; /* enum v2p_slot_state */
	struct v2p_access access;
	uint64_t generation; /* v2p.generation when it was looked up */
	uint64_t entry[MPT_WORDS];
	uint64_t offset;
	enum v2p_state result;
	uint8_t *addr;
	uint64_t run;
};

/* Classes of requests for pages; each has its own queue. */
enum mtt_class { MTT_READ, MTT_WRITE, MTT_CLASSES };

struct mtt_queue {
	uint8_t first, count;
	uint8_t channel[V2P_CHANNELS];
};

/*
 * What the last look-up of a poll has found in an entry: a similar look-up that follows need not
 * read the entry again as long as the sequence number of its set is the same.
 */
struct v2p_last {
	uint32_t key;	     /* 0: none yet; forgotten at the next poll */
	uint32_t pd, rights; /* as requested */
	uint32_t seq;
	const uint32_t *seq_now;
	uint64_t start; /* 0 with V2P_RELATIVE */
	uint64_t length;
	uint8_t *phys;
};

/* The port of one stage of one engine, or of the control thread; used only by its lcore. */
struct v2p_port {
	struct v2p *v2p;
	struct counters *counters; /* of the requester */
	uint8_t pending;	   /* channels with a pending request, a bit each */
	uint8_t selected;	   /* channel served first at the next poll */
	uint8_t mtt_selected;	   /* enum mtt_class, the same */
	bool pend_misses; /* a miss is pending as in the hardware; false: it is filled at once */
	struct v2p_last last;
	struct mtt_queue mtt[MTT_CLASSES];
	struct v2p_slot slot[V2P_CHANNELS];
} __attribute__((aligned(64)));

struct v2p {
	uint32_t mpts; /* entries of the MPT now: power of two */
	uint32_t mask; /* mpts - 1; atomic */
	struct tpt_cache mpt_cache, mtt_cache;
	struct tpt_table mpt, mtt;
	struct v2p_port ceu; /* the control thread's */
	uint32_t *bound;     /* by index, atomic: entries referring to that one, V2P_LEAVING */
	uint64_t *written;   /* by index, atomic: v2p_written(); control thread */
	uint32_t *live;	     /* entries in use, by chunk of the MPT; control thread */
	void **chunk;	     /* ICM memory allocated by the HCA itself; icm.c */
	uint32_t chunks;
	int socket;
	bool on_demand;		/* it does so when an entry without memory is first written */
	uint8_t *zeroes, *sink; /* the memory behind entries with MPT_NULL, V2P_NULL_BYTES each */
	uint64_t generation __attribute__((aligned(64))); /* atomic: grows with each change */
	bool open;					  /* from INIT_HCA to CLOSE_HCA */
};

/* Most bytes of an entry with MPT_NULL translated at once: more than a packet. */
#define V2P_NULL_BYTES 8192

#define V2P_LEAVING (1u << 31) /* HW2SW_MPT has begun: no more binds to it */

struct v2p_config {
	const char *name;
	uint32_t mpts, mtts;			   /* entries; powers of two, >= 4 */
	uint32_t mpt_cache_lines, mtt_cache_lines; /* powers of two; 64 and 32 bytes each */
	struct counters *counters;		   /* the control thread's */
	int socket;
};
/* Most MTT pages that one translation reads: bounds *run. */
enum { V2P_RUN_PAGES_MAX = 16 };

#define V2P_MPT_CACHE_LINES (512u << 10 >> 6)
#define V2P_MTT_CACHE_LINES (512u << 10 >> 5)

/* INIT_HCA: position of the tables in ICM. */
struct v2p_init {
	uint64_t mpt_base, mtt_base; /* multiples of 256 KiB; the tables do not overlap */
	uint8_t log_mpts, log_mtts;  /* at most what the HCA was configured for */
	bool on_demand; /* the HCA allocates memory itself; else the host maps it (MAP_ICM) */
};

/* Creates tables and caches; INIT_HCA with ICM on demand. 0, -EINVAL, -ENOMEM. */
int v2p_create(struct v2p *v, const struct v2p_config *config);
void v2p_destroy(struct v2p *v);

/* ---- the CEU's side; control thread ---- */

/* INIT_HCA. 0, -EBUSY: already open, -EINVAL. */
int v2p_init(struct v2p *v, const struct v2p_init *init);
/* CLOSE_HCA: all ICM is unmapped and, if it was the HCA's own, freed; the caller quiesces. 0,
 * -EBUSY: not open, or the MPT has entries. */
int v2p_close(struct v2p *v);
/* MAP_ICM: maps the chunk (TPT_CHUNK_PAGES pages) at `virt` to `memory` (4-KiB aligned; zeroed
 * here; NULL: the HCA allocates it) until UNMAP_ICM or CLOSE_HCA. 0, -EINVAL, -EEXIST, -ENOMEM. */
int v2p_map_icm(struct v2p *v, uint64_t virt, void *memory, uint32_t pages);
/* UNMAP_ICM of a chunk: MTT entries there are lost; its memory is the caller's again at once, since
 * only holders of a set access it. 0, -EINVAL, -ENOENT, -EBUSY: the MPT has entries there. */
int v2p_unmap_icm(struct v2p *v, uint64_t virt, uint32_t pages);
/* Could all chunks of a range be unmapped? The same answers. */
int v2p_may_unmap_icm(const struct v2p *v, uint64_t virt, uint32_t pages);

/* SW2HW_MPT and HW2SW_MPT. The caller chose entry->key, which contains the index, and quiesces
 * after invalidating. 0, -EEXIST (index in use), -EINVAL (wraps, key with only a tag, unknown
 * flags, pages outside the MTT), -ENOENT (no ICM there), -ENOMEM. */
int v2p_write_mpt(struct v2p *v, const struct mpt_entry *entry);
/* `key` as given to v2p_write_mpt(). 0 (also if it is invalid already), -ENOENT, -EBUSY: windows or
 * fast-registered regions refer to its memory. */
int v2p_invalidate_mpt(struct v2p *v, uint32_t key);
/* WRITE_MTT: addresses of pages, 4-KiB aligned; 0: none. 0, -EINVAL, -ENOENT, -ENOMEM. */
int v2p_write_mtt(struct v2p *v, uint32_t first, const uint64_t *pages, uint32_t count);

/* ---- whole entries: windows.c uses only these ---- */

/* A consistent copy of the entry at the key's index, whatever its tag. Any lcore. V2P_SUCCESS;
 * V2P_KEY_ERR: it has no owner under these bits of the key above the tag; V2P_PENDING: another
 * lcore holds the set. */
enum v2p_state v2p_entry_try(const struct v2p *v, uint32_t key, struct mpt_entry *copy);
/* The same for the control thread, which waits until the set is free. False: it has no owner. */
bool v2p_entry_get(const struct v2p *v, uint32_t key, struct mpt_entry *copy);

/*
 * Replaces the entry by *entry, modified from a copy of v2p_entry_try(), if it has not changed
 * since (entry->version) and its key is still `expected_key` (0: invalid). Readers see the old
 * entry or the new one. Any lcore. V2P_SUCCESS; V2P_KEY_ERR: it has changed, look again;
 * V2P_PENDING: another lcore holds the set.
 */
enum v2p_state v2p_entry_replace(struct v2p *v, uint32_t expected_key,
				 const struct mpt_entry *entry);

/* ---- memory windows, fast registration: windows.c; data path, any lcore ---- */

/* A bind, as in the work request; pd and qpn are the queue pair's. */
struct v2p_bind {
	uint32_t key;	 /* of the window, with its new tag */
	uint32_t parent; /* the region's; ignored if length is 0 */
	uint32_t pd, qpn;
	uint32_t access; /* remote rights and ACCESS_ZERO_BASED (type 2) */
	uint64_t start;	 /* first byte, as an address of the region */
	uint64_t length; /* 0: unbinds type 1, its key becomes invalid */
};

/*
 * Binds a window (IBTA 10.6.7.2). V2P_PENDING: nothing has happened yet, another lcore holds a set.
 * A window of type 1 may be bound already and is rebound; one of type 2 must be invalid.
 * V2P_SUCCESS; V2P_KEY_ERR: no such window or region, or another work request was faster, or the
 * region is being deregistered, or the window of type 2 is bound; V2P_PD_ERR: window, region and
 * queue pair have different PDs; V2P_FLAGS_ERR: invalid rights, or the region allows no windows, is
 * itself zero-based, or lacks local write for a remote one; V2P_LENGTH_ERR: outside the region, or
 * type 2 with length 0.
 */
enum v2p_state v2p_bind(struct v2p *v, const struct v2p_bind *b);

/*
 * A fast registration: `pages` pages of 2^log_page bytes of a registered region become a separate
 * region. The first byte is iova % page bytes into the first page. Pages that are consecutive in
 * the daemon's memory become one range; others go into the MTT entries that SW2HW_MPT gave the key
 * (MPT_OWNS_PAGES).
 */
struct v2p_registration {
	uint32_t key; /* of the entry, with its new tag */
	uint32_t parent;
	uint32_t pd;
	uint32_t access;
	uint64_t iova, length;
	const uint64_t *page; /* addresses of the parent's */
	uint32_t pages;
	uint8_t log_page;
};

/*
 * V2P_PENDING: as for v2p_bind(). The entry is claimed, its pages are written, it becomes valid:
 * three changes, between which the caller waits for sets that others hold. A reader of the pages
 * checks afterwards that the entry has not changed.
 *
 * V2P_SUCCESS; V2P_KEY_ERR, V2P_PD_ERR, V2P_FLAGS_ERR: as for v2p_bind(), where the entry must be
 * invalid; V2P_LENGTH_ERR: a page outside the parent, not aligned, or not contiguous in it; pages
 * larger than the parent's that cover more than V2P_FAST_PARENT_PAGES_MAX of those; not as many as
 * the length needs; more than the key was allocated for; scattered, and it has no MTT entries or
 * the daemon's addresses are not multiples of 4 KiB; length 0, or the address wraps.
 */
enum { V2P_FAST_PARENT_PAGES_MAX = 4096 };
enum v2p_state v2p_fast_register(struct v2p_port *port, const struct v2p_registration *r);

/*
 * SEND with invalidate, from the queue pair's peer, or a work request of its owner. The key becomes
 * invalid: accesses under it get V2P_KEY_ERR (one in progress on another lcore may still complete).
 * The index stays with the control side until HW2SW_MPT. V2P_SUCCESS; V2P_KEY_ERR: no such key, or
 * another request was faster; V2P_PD_ERR: of another PD, or bound to another queue pair;
 * V2P_FLAGS_ERR: the entry does not permit it; V2P_PENDING: as for v2p_bind().
 */
enum v2p_state v2p_invalidate(struct v2p *v, uint32_t pd, uint32_t qpn, uint32_t key);

/* Might a work request that precedes an access in its queue still make the key valid? Then the
 * access must not be refused before its turn. V2P_SUCCESS: yes; V2P_KEY_ERR; V2P_PENDING. */
enum v2p_state v2p_may_become(const struct v2p *v, uint32_t key);

/* Counts a refusal by its name. */
void v2p_count_error(struct counters *c, enum v2p_state s);

/* ---- translation ---- */

/* The index of a key's entry. Any lcore: INIT_HCA may change the number of entries. */
static inline uint32_t v2p_index(const struct v2p *v, uint32_t key)
{
	return key >> KEY_TAG_BITS & __atomic_load_n(&v->mask, __ATOMIC_RELAXED);
}

/* The first line of a set. */
static inline const uint64_t *mpt_lines(const struct tpt_cache *c, uint32_t set)
{
	return c->lines + (size_t)set * TPT_WAYS * MPT_WORDS;
}

static inline bool mpt_is(const struct mpt_entry *m, uint32_t key)
{
	return __atomic_load_n(&m->key, __ATOMIC_ACQUIRE) == key;
}

/* The rest of v2p_map_cached(): the key's entry is in this way of the set, whose sequence number
 * was `seq` before. */
static inline bool mpt_allows(struct v2p_port *port, const struct mpt_entry *m, struct tpt_set *s,
			      uint32_t way, uint32_t seq, const struct v2p_access *a,
			      uint8_t **addr)
{
	const uint32_t rights = (a->rights & ~V2P_RELATIVE) | V2P_PLAIN;
	uint64_t start = 0, bytes;
	uint8_t *phys;

	if (unlikely(__atomic_load_n(&m->pd, __ATOMIC_ACQUIRE) != a->pd))
		return false;
	if (unlikely((__atomic_load_n(&m->access, __ATOMIC_ACQUIRE) & rights) != rights))
		return false;
	if (!(a->rights & V2P_RELATIVE))
		start = __atomic_load_n(&m->start, __ATOMIC_ACQUIRE);
	bytes = __atomic_load_n(&m->length, __ATOMIC_ACQUIRE);
	if (unlikely(a->va - start > bytes || a->length > bytes - (a->va - start)))
		return false;
	phys = __atomic_load_n(&m->phys, __ATOMIC_ACQUIRE);
	if (unlikely(__atomic_load_n(&s->seq, __ATOMIC_RELAXED) != (seq & ~1u)))
		return false; /* held, or changed during the read */
	tpt_used(s, way);
	port->last = (struct v2p_last){.key = a->key,
				       .pd = a->pd,
				       .rights = a->rights,
				       .seq = seq,
				       .seq_now = &s->seq,
				       .start = start,
				       .length = bytes,
				       .phys = phys};
	*addr = phys + (a->va - start);
	return true;
}

/* The same for the second way of the key's set. */
bool v2p_map_second(struct v2p_port *port, const struct v2p_access *a, uint8_t **addr);

/* Does what the last look-up has found allow this one, too? Only if the entry has not changed
 * since: as if it were read now. */
static inline bool v2p_map_again(const struct v2p_last *l, const struct v2p_access *a,
				 uint8_t **addr)
{
	uint64_t at = a->va - l->start;

	if (l->key != a->key || l->pd != a->pd || l->rights != a->rights || at > l->length ||
	    a->length > l->length - at || __atomic_load_n(l->seq_now, __ATOMIC_ACQUIRE) != l->seq)
		return false;
	*addr = l->phys + at;
	return true;
}

/* The first way of the key's set, or the second. It reads as few words as possible, and no tags: a
 * line whose words name a key is that key's (tpt_drop() clears them). */
static inline bool v2p_map_set(struct v2p_port *port, const struct v2p_access *a, uint8_t **addr)
{
	const struct tpt_cache *c = &port->v2p->mpt_cache;
	uint32_t n = v2p_index(port->v2p, a->key) & c->set_mask, seq;
	const struct mpt_entry *m = (const struct mpt_entry *)mpt_lines(c, n);
	struct tpt_set *s = &c->sets[n];

	seq = __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE);
	if (unlikely(!mpt_is(m, a->key)))
		return v2p_map_second(port, a, addr);
	return mpt_allows(port, m, s, 0, seq, a, addr);
}

/* The fast path of all look-ups, taken by most accesses: the entry is cached, plain, and allows the
 * access. False: not so, and the slow path finds out why. */
static __rte_always_inline bool v2p_map_cached(struct v2p_port *port, const struct v2p_access *a,
					       uint8_t **addr)
{
	return likely(a->key) &&
	       (likely(v2p_map_again(&port->last, a, addr)) || v2p_map_set(port, a, addr));
}

static inline void v2p_count(struct v2p_port *port, enum v2p_channel channel)
{
	count(port->counters, (enum counter)(COUNTER_v2p_ceu + channel));
}

/* Tries only the short path; a->length is not 0. False: nothing has happened yet; call
 * v2p_request(). */
static inline bool v2p_map_short(struct v2p_port *port, enum v2p_channel channel,
				 const struct v2p_access *a, uint8_t **addr)
{
	if (unlikely(!v2p_map_cached(port, a, addr)))
		return false;
	v2p_count(port, channel);
	return true;
}

enum v2p_state v2p_request_slow(struct v2p_port *port, enum v2p_channel channel,
				const struct v2p_access *a, uint8_t **addr, uint64_t *run);
enum v2p_state v2p_check_slow(struct v2p_port *port, enum v2p_channel channel,
			      const struct v2p_access *a);

/*
 * Checks an access and translates it: on success *addr is the daemon's address of a->va and *run
 * how many bytes from there are contiguous (a->length, or less at a page border: continue with
 * a->va + *run). Zero length: no check at all, *addr NULL (C9-88).
 *
 * V2P_PENDING: another lcore holds what is needed (or, with pend_misses, it is not cached). The
 * request waits in its channel's slot, v2p_poll() completes it, and repeating the request then gets
 * the answer. Until then the channel accepts no other that is not cached; other channels continue.
 */
static inline enum v2p_state v2p_request(struct v2p_port *port, enum v2p_channel channel,
					 const struct v2p_access *a, uint8_t **addr, uint64_t *run)
{
	*run = a->length;
	*addr = NULL;
	if (a->length == 0)
		return V2P_SUCCESS;
	v2p_count(port, channel);
	if (likely(v2p_map_cached(port, a, addr)))
		return V2P_SUCCESS;
	return v2p_request_slow(port, channel, a, addr, run);
}

/* Only the check, for an access of any length whose addresses are not needed yet. The same answers,
 * V2P_PENDING among them. */
static inline enum v2p_state v2p_check(struct v2p_port *port, enum v2p_channel channel,
				       const struct v2p_access *a)
{
	uint8_t *addr;

	if (a->length == 0)
		return V2P_SUCCESS;
	v2p_count(port, channel);
	if (likely(v2p_map_cached(port, a, &addr)))
		return V2P_SUCCESS;
	return v2p_check_slow(port, channel, a);
}

unsigned v2p_poll_pending(struct v2p_port *port);

/* At the beginning of a stage's poll: the request scheduler tries each pending request, the CEU's
 * first, the others in turn. Returns how many were completed. */
static inline unsigned v2p_poll(struct v2p_port *port)
{
	port->last.key = 0;
	return likely(port->pending == 0) ? 0 : v2p_poll_pending(port);
}

static inline void v2p_prefetch(const struct v2p *v, uint32_t key)
{
	const struct tpt_cache *c = &v->mpt_cache;
	uint32_t n = v2p_index(v, key) & c->set_mask;
	const uint64_t *line = mpt_lines(c, n);

	__builtin_prefetch(&c->sets[n]);
	__builtin_prefetch(line);
	__builtin_prefetch(line + MPT_WORDS);
}

#endif
