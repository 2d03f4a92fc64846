/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device, its port, its addresses and keys are.
 */
#include "verbs_priv.h"

int shca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t bytes)
{
	return EOPNOTSUPP;
}

int shca_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t bytes)
{
	return EOPNOTSUPP;
}

int shca_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
	return EOPNOTSUPP;
}
