/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private part of libibverbs: programs are linked with providers' libraries (perftest with
 * libmlx5 and libefa, for one), which need its symbols to load. Each symbol of private_symbols.def
 * is in the version node of each release that distributions ship. Only the constructors'
 * registration and the log are expected to be called, and they do nothing.
 */
#include "handles.h"

int verbs_private_refused(void);
int verbs_private_refused(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* An alias in each node: a unique name, then the name and node by which it is known. */
#define IN_NODE(name, target, node)                                                                \
	extern __typeof__(target) name##_in_##node                                                 \
		__attribute__((alias(#target), visibility("default"), used));                      \
	__asm__(".symver " #name "_in_" #node "," #name "@IBVERBS_PRIVATE_" #node);
#define IN_ALL_NODES(name, target)                                                                 \
	IN_NODE(name, target, 25)                                                                  \
	IN_NODE(name, target, 34)                                                                  \
	IN_NODE(name, target, 57)                                                                  \
	IN_NODE(name, target, 59)                                                                  \
	IN_NODE(name, target, 64)

#define PRIVATE(name) IN_ALL_NODES(name, verbs_private_refused)
#include "private_symbols.def"
#undef PRIVATE

/*
 * Private, but called by programs (ibv_devinfo, pyverbs): the type of a GID as sysfs numbers it,
 * 1: RoCE v2. 0, or -1 with errno.
 */
int verbs_query_gid_type(struct ibv_context *c, uint8_t port, unsigned int index,
			 unsigned int *type);
int verbs_query_gid_type(struct ibv_context *c, uint8_t port, unsigned int index,
			 unsigned int *type)
{
	union ibv_gid gid;

	if (ibv_query_gid(c, port, (int)index, &gid))
		return -1;
	*type = 1;
	return 0;
}
IN_ALL_NODES(ibv_query_gid_type, verbs_query_gid_type)

/* Data, not a function. */
int verbs_data_of_providers;
IN_ALL_NODES(verbs_allow_disassociate_destroy, verbs_data_of_providers)
