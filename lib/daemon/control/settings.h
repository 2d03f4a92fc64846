/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_SETTINGS_H
#define CONTROL_SETTINGS_H
/* Who may change what concerns others. */
#include "control_priv.h"

/* May the client change what concerns others, too? Root, the daemon's own user and the
 * members of its admin_group may. */
bool client_may_change(const struct client *client);

/* May the client do `what`, which concerns others? 0; -EPROTO: another version; -EPERM,
 * which is logged. */
int client_may(struct client *client, uint32_t version, const char *what);

/* Replies with the outcome of a change. 0; -EAGAIN: it is not complete yet. */
int change_answered(struct control_change_reply *reply, int rc);

#endif
