/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a filter of the list in sandbox.def (sandbox.h). Control thread. */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include "sandbox.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

/* A name that this architecture does not have (open, on arm64) needs no rule. 0 or -errno. */
static int allow(scmp_filter_ctx filter, const char *name, const struct scmp_arg_cmp *condition)
{
	int number = seccomp_syscall_resolve_name(name);
	int ret;

	if (number < 0)
		return 0;
	ret = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, condition ? 1 : 0, condition);
	return ret == -EEXIST ? 0 : ret;
}

static int add_rules(scmp_filter_ctx filter)
{
	static const struct {
		const char *name;
		struct scmp_arg_cmp condition; /* op 0: none */
	} rules[] = {
#define ALLOW(name) {#name, {.op = 0}},
#define ALLOW_IF(name, argument, mask, value)                                                      \
	{#name, {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value}},
#include "sandbox.def"
	};
	int ret = 0;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && !ret; i++)
		ret = allow(filter, rules[i].name,
			    rules[i].condition.op ? &rules[i].condition : NULL);
	return ret;
}

int sandbox_enter(void)
{
	scmp_filter_ctx filter;
	int ret;

#ifdef SOFTHCA_SANITIZED
	return -ENOTSUP;
#endif
	filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!filter)
		return -ENOMEM;
	ret = add_rules(filter);
	if (!ret)
		ret = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0,
					     NULL);
	if (!ret)
		ret = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!ret)
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1); /* where the kernel can */
	if (!ret)
		ret = seccomp_load(filter);
	seccomp_release(filter);
	return ret;
}
