/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_ACTION_H
#define SHARING_ACTION_H
/* Signals at the kernel's interface: the C library refuses its own signals, and sanitizers keep
 * some handlers for themselves. */
#include <signal.h>
#include <stdint.h>
#include "sys.h"

/* The kernel's struct sigaction. */
struct action {
	union {
		void (*handler)(int sig, siginfo_t *info, void *context);
		uintptr_t word;
	};
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

#ifdef __x86_64__
void sharing_sigreturn(void) __attribute__((visibility("hidden")));
enum { SIGRETURN_BYTES = 8 }; /* the last is the return address of its system call */
#define RESTORER_FLAG 0x04000000ul
#define RESTORER      sharing_sigreturn
#else
#define RESTORER_FLAG 0ul
#define RESTORER      NULL
#endif

#define ACTION_FLAGS (SA_SIGINFO | SA_RESTART | SA_ONSTACK | RESTORER_FLAG)

/* Either may be NULL. */
static inline void action_set(int sig, const struct action *is, struct action *was)
{
	sys6(SYS_rt_sigaction, sig, (long)is, (long)was, 8, 0, 0);
}

static inline uint64_t signal_bit(int sig)
{
	return 1ull << (sig - 1);
}

/* This thread's mask, including the C library's own signals. */
static inline void mask_set(const uint64_t *is, uint64_t *was)
{
	sys6(SYS_rt_sigprocmask, SIG_SETMASK, (long)is, (long)was, 8, 0, 0);
}

#endif
