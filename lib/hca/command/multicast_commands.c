/* SPDX-License-Identifier: BSD-3-Clause */
/* The CEU's commands on multicast groups. Control thread. Writes the table of groups. */
#include <errno.h>
#include "base/ip.h"
#include "ceu_priv.h"

static enum ceu_status multicast_status_of(int err)
{
	return err == 0 ? CEU_OK : err == -ENOMEM ? CEU_BAD_NVMEM : CEU_BAD_SYS_STATE;
}

enum ceu_status ceu_group_attach(struct ceu *ceu, uint32_t qpn, const struct ceu_multicast *in)
{
	const struct qp *q = qp_find(ceu->config.qps, qpn);

	if (!ceu->config.multicast || !q || q->service != SERVICE_UD || !ip_is_group(in->mgid))
		return CEU_BAD_PARAM;
	return multicast_status_of(multicast_attach(ceu->config.multicast, in->mgid, qpn));
}

enum ceu_status ceu_group_detach(struct ceu *ceu, uint32_t qpn, const struct ceu_multicast *in)
{
	int err;

	if (!ceu->config.multicast)
		return CEU_BAD_PARAM;
	err = multicast_detach(ceu->config.multicast, in->mgid, qpn);
	if (!err)
		ceu_settle(ceu);
	return multicast_status_of(err);
}
