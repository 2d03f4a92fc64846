/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens at fork(); see sharing.h. */
#include "sharing_priv.h"

void fork_watch(void)
{
}
