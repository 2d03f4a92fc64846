/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_PORT_CHECK_H
#define PMD_GLUE_PORT_CHECK_H
/* Whether a configuration makes sense before anything is built from it. Control thread. */
#include "pmd-glue/port.h"

/* 0; -EINVAL, and a log line says which setting of which port is wrong. */
int port_check_config(const struct port_config *config);

/* 0; -EINVAL: a pool's private areas or data rooms are too small. */
int port_check_pools(const struct port_config *config, struct rte_mempool *packet_pool,
		     struct rte_mempool *clone_pool);

#endif
