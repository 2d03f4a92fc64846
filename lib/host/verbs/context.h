/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_CONTEXT_H
#define VERBS_CONTEXT_H
#include "verbs_priv.h"

/* Opens the context named by `cmd_fd`, a duplicate of its descriptor, once more; owns the
 * descriptor on success. NULL with errno. */
struct ibv_context *context_import(int cmd_fd);

#endif
