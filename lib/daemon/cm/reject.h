/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_REJECT_H
#define CM_REJECT_H
/* Rejection. */
#include "connection_priv.h"

void cm_on_rej(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
/* Sends a REJ outside any connection. */
void cm_refuse(struct cm *cm, const struct cm_path *path, const struct cm_message *m,
	       enum cm_reject_reason reason, const void *info, uint8_t info_bytes);
/* Repeats the REJ about the message that arrived, if c's last message was a REJ. */
void cm_reject_again(struct cm_connection *c, enum cm_about about);
/* Sends a REJ because the peer does not answer. */
void cm_reject_timeout(struct cm_connection *c, uint64_t now);

#endif
