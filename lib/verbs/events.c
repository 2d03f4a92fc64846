/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels, asynchronous events.
 */
#include "verbs_priv.h"
