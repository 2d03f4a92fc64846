/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Enumerations as words, rates as numbers.
 */
#include "verbs_priv.h"
