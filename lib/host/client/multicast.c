/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaches queue pairs to multicast groups. All state is the daemon's. Any thread, never on the
 * data path. */
#include <string.h>
#include "context.h"

static int ask_multicast(struct softhca_qp *qp, uint32_t type, const uint8_t mgid[16])
{
	struct control_multicast in = {.qpn = qp->number};

	memcpy(in.mgid, mgid, sizeof(in.mgid));
	return ctx_call(qp->node.ctx, type, &in, sizeof(in), NULL, 0, -1, NULL);
}

int softhca_attach_mcast(struct softhca_qp *qp, const uint8_t mgid[16])
{
	return ask_multicast(qp, CONTROL_ATTACH_MCAST, mgid);
}

int softhca_detach_mcast(struct softhca_qp *qp, const uint8_t mgid[16])
{
	int rc = ask_multicast(qp, CONTROL_DETACH_MCAST, mgid);

	return rc == -ENOTCONN ? 0 : rc; /* the attachment died with the daemon */
}
