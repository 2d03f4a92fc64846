/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private part of other libibverbs: programs are linked with libraries of providers (perftest
 * with libmlx5 and libefa, for one), which are linked with it and would not load without. Each of
 * private_symbols.def stands in the node of each release that distributions have; to be called is
 * not expected of any but the constructors' registration and the log, which do nothing.
 */
#include "verbs_priv.h"

int verbs_private_refused(void);
int verbs_private_refused(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* An alias in each node: a name of its own, then the name and node that it goes by. */
#define IN_NODE(name, node)                                                                        \
	extern __typeof__(verbs_private_refused) name##_in_##node                                  \
		__attribute__((alias("verbs_private_refused"), visibility("default"), used));      \
	__asm__(".symver " #name "_in_" #node "," #name "@IBVERBS_PRIVATE_" #node);

#define PRIVATE(name)                                                                              \
	IN_NODE(name, 25) IN_NODE(name, 34) IN_NODE(name, 57) IN_NODE(name, 59) IN_NODE(name, 64)
#include "private_symbols.def"
#undef PRIVATE

/* Data, not a function. */
int verbs_data_of_providers;
#define DATA_IN_NODE(name, node)                                                                   \
	extern int name##_in_##node                                                                \
		__attribute__((alias("verbs_data_of_providers"), visibility("default"), used));    \
	__asm__(".symver " #name "_in_" #node "," #name "@IBVERBS_PRIVATE_" #node);
DATA_IN_NODE(verbs_allow_disassociate_destroy, 25)
DATA_IN_NODE(verbs_allow_disassociate_destroy, 34)
DATA_IN_NODE(verbs_allow_disassociate_destroy, 57)
DATA_IN_NODE(verbs_allow_disassociate_destroy, 59)
DATA_IN_NODE(verbs_allow_disassociate_destroy, 64)
