/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIRT_TO_PHYS_PAYLOAD_REF_H
#define VIRT_TO_PHYS_PAYLOAD_REF_H
/*
 * A payload that stays in its client's memory. Within the daemon the sender of a packet may put a
 * reference in place of the payload; the receiver follows it and copies once, from client to client
 * (doc/decisions/0023-copy-once.md). PAYLOAD_REF (pipeline/frame_marks.h) marks such packets.
 *
 * A reference never outlives the right to read the memory. Following it checks whether the sender's
 * tables have changed since it was made and, if they have, whether its region is still the same
 * one. The address is then valid until the end of the stage's current poll, since an invalidation
 * waits for every lcore of the daemon (v2p.h).
 *
 * Nor does it outlive the request: until that completes its client leaves the payload alone. An
 * acknowledgement completes it after the copy, but a queue pair that fails or is reset completes it
 * at any time, and before that changes a number, its turn. If the receiver finds another turn it
 * drops the packet. It checks before the copy, so that what the client has written since reaches
 * nobody, and again after it.
 */
#include <string.h>
#include "virt-to-phys/v2p.h"

struct payload_ref {
	const struct v2p *v2p; /* the sender's */
	const uint8_t *at;     /* where the bytes were when it was made */
	uint64_t va;
	uint64_t generation; /* v2p->generation, read before the translation */
	uint64_t turn;
	const uint64_t *turn_now; /* differs from `turn` once the request may have completed;
				     NULL: of a READ response, whose memory its owner may change
				     at any time */
	uint32_t bytes;
	uint32_t key, pd, rights; /* as they were translated; the entry is a plain one */
};

/* Shorter payloads are copied: they cost less than following a reference (doc/tuning.md#ports). At
 * least as long as a reference. A message of one packet can join others in a train if it is
 * copied. */
#define PAYLOAD_REF_BYTES_MIN	   512
#define PAYLOAD_REF_ONLY_BYTES_MIN 1537

_Static_assert(sizeof(struct payload_ref) <= PAYLOAD_REF_BYTES_MIN, "stands in its place");

/*
 * Makes a reference to what *a covers at `place`, which need not be aligned; turn_now as above.
 * Called by the stage that would have copied. False: these bytes are not in one piece, not cached,
 * or not allowed, as v2p_request() reports; nothing was written.
 */
static inline bool payload_ref_make(struct v2p_port *port, enum v2p_channel channel,
				    const struct v2p_access *a, const uint64_t *turn_now,
				    uint8_t *place)
{
	struct payload_ref r = {.v2p = port->v2p,
				.turn_now = turn_now,
				.va = a->va,
				.bytes = (uint32_t)a->length,
				.key = a->key,
				.pd = a->pd,
				.rights = a->rights,
				.generation =
					__atomic_load_n(&port->v2p->generation, __ATOMIC_ACQUIRE)};
	uint8_t *at;

	if (unlikely(!v2p_map_short(port, channel, a, &at)))
		return false;
	r.at = at;
	if (turn_now)
		r.turn = __atomic_load_n(turn_now, __ATOMIC_ACQUIRE);
	memcpy(place, &r, sizeof(r));
	return true;
}

/* Writes to `place` a reference to `bytes` of what the one at `whole` names, `skip` bytes into
 * it. */
static inline void payload_ref_part(uint8_t *place, const uint8_t *whole, uint32_t skip,
				    uint32_t bytes)
{
	struct payload_ref r;

	memcpy(&r, whole, sizeof(r));
	r.at += skip;
	r.va += skip;
	r.bytes = bytes;
	memcpy(place, &r, sizeof(r));
}

/* payload_ref_follow() when the sender's tables have changed. */
enum v2p_state payload_ref_recheck(const struct payload_ref *r, const uint8_t **at);

/* Can its request not have completed yet? */
static inline bool payload_ref_in_turn(const struct payload_ref *r)
{
	return !r->turn_now || __atomic_load_n(r->turn_now, __ATOMIC_ACQUIRE) == r->turn;
}

/*
 * Follows the reference at `place`; *at is valid until the end of the stage's current poll. Any
 * lcore of the daemon. V2P_SUCCESS; V2P_KEY_ERR: its region is no longer there, or its request may
 * have completed; V2P_PENDING: another lcore holds the entry, ask again at the next poll.
 */
static inline enum v2p_state payload_ref_follow(const uint8_t *place, const uint8_t **at)
{
	struct payload_ref r;

	memcpy(&r, place, sizeof(r));
	if (unlikely(!payload_ref_in_turn(&r)))
		return V2P_KEY_ERR;
	*at = r.at;
	if (likely(__atomic_load_n(&r.v2p->generation, __ATOMIC_ACQUIRE) == r.generation))
		return V2P_SUCCESS;
	return payload_ref_recheck(&r, at);
}

/* After the copy: are the bytes copied those that were sent? False: drop the packet. Any lcore. */
static inline bool payload_ref_held(const uint8_t *place)
{
	struct payload_ref r;

	memcpy(&r, place, sizeof(r));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return payload_ref_in_turn(&r);
}

/* Does the reference at `place` lead through these tables? */
static inline bool payload_ref_is_of(const uint8_t *place, const struct v2p *sender)
{
	struct payload_ref r;

	memcpy(&r, place, sizeof(r));
	return r.v2p == sender;
}

/* Copies `bytes` of what the reference at `place` names, `skip` bytes into it, for a capture.
 * False: they are gone, or another lcore holds the entry; `to` is undefined. Any lcore. */
bool payload_ref_copy(const uint8_t *place, uint32_t skip, uint8_t *to, uint32_t bytes);

/* payload_ref_follow() for a port whose driver copies (port_payload_place): 0, -EAGAIN or -ENOENT;
 * *bytes: how many the reference names. The sender's lcore, if it runs all of the engine: what may
 * end the request then comes before or after the copy. */
int payload_ref_find(const uint8_t *place, const uint8_t **at, uint32_t *bytes);

#endif
