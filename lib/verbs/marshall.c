/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes in the form in which a kernel passes them: for librdmacm.
 */
#include "verbs_priv.h"
