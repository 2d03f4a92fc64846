/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef V2P_PRIV_H
#define V2P_PRIV_H
/* Shared by the files of VirtToPhys only. */
#include <string.h>
#include "virt-to-phys/v2p.h"

enum { V2P_CHUNK_MPTS = TPT_CHUNK_BYTES >> TPT_LOG_MPT_ENTRY };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "MPT_WORD_* are little-endian");

/* An entry as the words of its line. */
union mpt_line {
	struct mpt_entry entry;
	uint64_t words[MPT_WORDS];
};

/* windows.c: an entry no longer refers to the memory of `parent` (0: it did not). */
void v2p_parent_release(struct v2p *v, uint32_t parent);

/* Reads a line: from the cache, or from memory, which fills it. V2P_SUCCESS; V2P_KEY_ERR: there is
 * no memory behind it; V2P_PENDING: another lcore holds the set, or it is a miss and not to be
 * refilled. `miss` is counted when it is. */
enum v2p_state tpt_try(struct v2p_port *port, const struct tpt_cache *c, uint32_t line,
		       uint64_t *out, bool refill, enum counter miss);
/* The words of the MPT entry at a key's index. */
enum v2p_state mpt_try(struct v2p_port *port, uint32_t key, uint64_t *words, bool refill);

/* Reads the words of an entry that a check needs, if the entry is cached and its set is not being
 * changed. Never waits. */
static inline bool mpt_find(const struct tpt_cache *c, uint32_t index, uint64_t *w)
{
	uint32_t n = index & c->set_mask;
	struct tpt_set *s = &c->sets[n];
	const uint64_t *line = mpt_lines(c, n);
	uint32_t seq;
	int way;

	seq = __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE);
	way = tpt_way(s, index);
	line += way > 0 ? MPT_WORDS : 0;
	if (unlikely(way < 0 || seq & 1))
		return false;
	for (unsigned i = 0; i < MPT_WORDS_CHECKED; i++)
		w[i] = __atomic_load_n(&line[i], __ATOMIC_ACQUIRE);
	if (unlikely(__atomic_load_n(&s->seq, __ATOMIC_RELAXED) != seq))
		return false;
	tpt_used(s, (uint32_t)way);
	return true;
}

/* Match-Info against an entry, in the order of doc/virt-to-phys.md#match-info. V2P_SUCCESS: *offset
 * is where in the entry the access begins. */
static inline enum v2p_state mpt_check(const uint64_t *w, const struct v2p_access *a,
				       uint64_t *offset)
{
	uint32_t rights = a->rights & ~(V2P_RELATIVE | V2P_CHECK_ONLY);
	uint64_t at = a->va - (a->rights & V2P_RELATIVE ? 0 : w[MPT_WORD_START]);

	if (unlikely((uint32_t)w[MPT_WORD_KEY_PD] != a->key || a->key == 0))
		return V2P_KEY_ERR;
	if (unlikely(w[MPT_WORD_KEY_PD] >> 32 != a->pd))
		return V2P_PD_ERR;
	if (unlikely((w[MPT_WORD_ACCESS_FLAGS] & rights) != rights))
		return V2P_FLAGS_ERR;
	if (unlikely(at > w[MPT_WORD_LENGTH] || a->length > w[MPT_WORD_LENGTH] - at))
		return V2P_LENGTH_ERR;
	*offset = at;
	return V2P_SUCCESS;
}

/* Something has changed: completed requests whose answers have not been taken yet are invalid. */
static inline void v2p_changed(struct v2p *v)
{
	__atomic_fetch_add(&v->generation, 1, __ATOMIC_RELEASE);
}

/* v2p.generation when the entry of this key, or another one at its index, was written last, before
 * that counted. */
static inline uint64_t v2p_written(const struct v2p *v, uint32_t key)
{
	return __atomic_load_n(&v->written[v2p_index(v, key)], __ATOMIC_ACQUIRE);
}

/* Address and run of an access to an entry with MPT_NULL. Several lcores may write the sink at
 * once: it is never read. */
static inline uint8_t *null_map(const struct v2p *v, uint32_t rights, uint64_t *run)
{
	const uint32_t writes = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;

	*run = *run < V2P_NULL_BYTES ? *run : V2P_NULL_BYTES;
	return rights & writes ? v->sink : v->zeroes;
}

/* mtt.c: address and run of the byte `offset` of an entry with MPT_PAGES, of whose access `length`
 * bytes are left. V2P_SUCCESS; V2P_LENGTH_ERR: no page is there; V2P_PENDING. */
enum v2p_state mtt_map(struct v2p_port *port, const struct mpt_entry *m, uint64_t offset,
		       uint64_t length, uint8_t **addr, uint64_t *run);
/* Pages that an entry with MPT_PAGES takes in the MTT. */
uint64_t mtt_pages(const struct mpt_entry *m);
/* Clears those of an entry with MPT_OWNS_PAGES (HW2SW_MPT covers its MTTs). Control thread. */
void mtt_clear(struct v2p *v, const struct mpt_entry *m);
/* Writes addresses of pages, 4-KiB aligned, from MTT entry `first` on, which only the caller may
 * change. Any lcore; spins while another holds one of the lines. False: no ICM is mapped there. */
bool mtt_put(struct v2p *v, uint32_t first, const uint64_t *pages, uint32_t count);

/* windows.c: mpt_check() of an entry with MPT_CHANGES. */
enum v2p_state changing_check(const struct mpt_entry *m, const struct v2p_access *a,
			      uint64_t *offset);
/* Is the entry still what it was when the MTT was read? V2P_SUCCESS, V2P_KEY_ERR, V2P_PENDING. */
enum v2p_state changing_still(const struct v2p *v, const struct mpt_entry *m);

/* icm.c: memory for entries [first, first + count), if the HCA was made to find it itself. 0,
 * -ENOENT: the host has to MAP_ICM, -ENOMEM. */
int icm_need(struct v2p *v, struct tpt_table *t, uint64_t first, uint64_t count);
/* Maps a chunk of memory of our own at `virt`. 0, -ENOMEM, -EEXIST. */
int icm_map_own(struct v2p *v, struct tpt_table *t, uint64_t virt);
/* Frees the chunk, if it is one of our own; NULL: all. Nothing is mapped there any more. */
void icm_free(struct v2p *v, const void *memory);

#endif
