/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles, and addresses taken from completions.
 */
#include "verbs_priv.h"
