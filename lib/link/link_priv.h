/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_PRIV_H
#define LINK_PRIV_H
/* What the modules of the header_parse stage share with each other and with nobody else. */
#include "context/qp_context.h"
#include "link/link.h"
#include "link/link_port.h"
#include "pipeline/message.h"
#include "wire/crc.h"
#include "wire/encap.h"

unsigned hp_poll(struct engine *e);
int txa_create(struct engine *e);
unsigned txa_poll(struct engine *e);

#endif
