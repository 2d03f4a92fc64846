/* SPDX-License-Identifier: BSD-3-Clause */
/* References to payload whose sender's tables have changed since they were made. Any lcore. */
#include <errno.h>
#include "v2p_priv.h"
#include "virt-to-phys/payload_ref.h"

enum v2p_state payload_ref_recheck(const struct payload_ref *r, const uint8_t **at)
{
	const struct v2p_access a = {.pd = r->pd,
				     .key = r->key,
				     .va = r->va,
				     .length = r->bytes,
				     .rights = r->rights | V2P_PLAIN};
	union mpt_line m;
	uint64_t offset;
	enum v2p_state s = v2p_entry_try(r->v2p, r->key, &m.entry);

	if (s != V2P_SUCCESS)
		return s;
	/* A key may be reused, even within the same PD. */
	if (v2p_written(r->v2p, r->key) >= r->generation)
		return V2P_KEY_ERR;
	if (mpt_check(m.words, &a, &offset) != V2P_SUCCESS)
		return V2P_KEY_ERR;
	*at = m.entry.phys + offset;
	return V2P_SUCCESS;
}

bool payload_ref_copy(const uint8_t *place, uint32_t skip, uint8_t *to, uint32_t bytes)
{
	const uint8_t *at;

	if (payload_ref_follow(place, &at) != V2P_SUCCESS)
		return false;
	memcpy(to, at + skip, bytes);
	return payload_ref_held(place);
}

int payload_ref_find(const uint8_t *place, const uint8_t **at, uint32_t *bytes)
{
	enum v2p_state found = payload_ref_follow(place, at);
	struct payload_ref r;

	memcpy(&r, place, sizeof(r));
	*bytes = r.bytes;
	if (found == V2P_PENDING)
		return -EAGAIN;
	return found == V2P_SUCCESS ? 0 : -ENOENT;
}
