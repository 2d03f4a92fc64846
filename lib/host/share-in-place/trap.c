/* SPDX-License-Identifier: BSD-3-Clause */
/* Catches the system call by which fork() makes the child; see trap.h. */
#include "trap.h"
#include <linux/audit.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include "action.h"

enum {
	STACK_BYTES = 256 << 10,
	GUARD_BYTES = 4096,
	DISPATCH = 59,	 /* PR_SET_SYSCALL_USER_DISPATCH */
	IS_DISPATCH = 2, /* SYS_USER_DISPATCH, a code of SIGSYS */
	ALLOW = 0,	 /* SYSCALL_DISPATCH_FILTER_ALLOW */
	BLOCK = 1,
	INSTRUCTION_BYTES = 2,
};

bool trap_never;

/* Memory that must not change while pages are swapped: never shared, its address is private. */
struct room {
	uint8_t stack[STACK_BYTES];
	uint8_t selector; /* the kernel reads it at each system call */
	struct trap_call call;
	struct clone_args clone;
} __attribute__((aligned(4096)));
static struct room *room;

static bool room_open(void)
{
	long at;

	if (room)
		return true;
	at = sys6(SYS_mmap, 0, GUARD_BYTES + sizeof(*room), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at < 0)
		return false;
	sys6(SYS_mprotect, at, GUARD_BYTES, PROT_NONE, 0, 0, 0);
	room = (struct room *)(at + GUARD_BYTES);
	return true;
}

#ifdef __x86_64__
#include <ucontext.h>

static const struct trap_ops *trap_ops;
static struct action former;
static pthread_t owner; /* the thread */
static bool armed;

/* ---- a separate stack ---- */

void sharing_on_stack(void (*fn)(void *arg), void *arg, void *top)
	__attribute__((visibility("hidden")));
__asm__(".text\n.globl sharing_on_stack\n.hidden sharing_on_stack\n"
	".type sharing_on_stack,@function\n"
	"sharing_on_stack:\n"
	".cfi_startproc\n\t"
	"pushq %rbp\n\t"
	".cfi_def_cfa_offset 16\n\t"
	".cfi_offset 6, -16\n\t"
	"movq %rsp, %rbp\n\t"
	".cfi_def_cfa_register 6\n\t"
	"movq %rdx, %rsp\n\t"
	"movq %rdi, %rax\n\t"
	"movq %rsi, %rdi\n\t"
	"call *%rax\n\t"
	"movq %rbp, %rsp\n\t"
	"popq %rbp\n\t"
	".cfi_def_cfa 7, 8\n\t"
	"ret\n"
	".cfi_endproc\n");

bool trap_on_own_stack(void (*fn)(void *arg), void *arg)
{
	if (!room_open())
		return false;
	sharing_on_stack(fn, arg, room->stack + STACK_BYTES);
	return true;
}

/* ---- the calls ---- */

static long trap_dispatch(int on)
{
	/* The return from the handler is always allowed. */
	return sys6(SYS_prctl, DISPATCH, on, on ? (long)sharing_sigreturn : 0,
		    on ? SIGRETURN_BYTES : 0, on ? (long)&room->selector : 0, 0);
}

/* Ends the trap, in the thread that set it or in its child. */
static void trap_stop(void)
{
	room->selector = ALLOW;
	trap_dispatch(0);
	armed = false;
}

enum what { FORKS, MASKS, GOES_ON, CANNOT };

/* The kernel stores the child's id into pages that are still the parent's: do it ourselves. */
static enum what look_at_clone(struct trap_call *call)
{
	const uint64_t flags = (uint64_t)call->argument[0];

	if (flags & CLONE_VM || call->argument[1])
		return CANNOT;
	if (flags & CLONE_CHILD_SETTID)
		call->child_tid = (int *)call->argument[3];
	call->argument[0] = (long)(flags & ~(uint64_t)CLONE_CHILD_SETTID);
	return FORKS;
}

static enum what look_at_clone3(struct trap_call *call)
{
	const size_t bytes = (size_t)call->argument[1];

	if (bytes > sizeof(room->clone) || bytes < CLONE_ARGS_SIZE_VER0)
		return CANNOT;
	memcpy(&room->clone, (const void *)call->argument[0], bytes);
	if (room->clone.flags & CLONE_VM || room->clone.stack)
		return CANNOT;
	if (room->clone.flags & CLONE_CHILD_SETTID)
		call->child_tid = (int *)room->clone.child_tid;
	room->clone.flags &= ~(uint64_t)CLONE_CHILD_SETTID;
	call->argument[0] = (long)&room->clone;
	return FORKS;
}

static enum what look_at(struct trap_call *call)
{
	switch (call->number) {
	case SYS_fork:
		return FORKS;
	case SYS_clone:
		return look_at_clone(call);
	case SYS_clone3:
		return look_at_clone3(call);
	case SYS_rt_sigprocmask:
		return MASKS;
	case -1: /* of another ABI */
	case SYS_vfork:
	case SYS_rt_sigreturn:
		return CANNOT;
	default:
		return GOES_ON;
	}
}

long trap_fork(const struct trap_call *c)
{
	return sys6(c->number, c->argument[0], c->argument[1], c->argument[2], c->argument[3],
		    c->argument[4], c->argument[5]);
}

/* Changes the mask to which the thread returns, not that of the handler. */
static long set_mask(const struct trap_call *call, ucontext_t *u)
{
	const uint64_t *set = (const uint64_t *)call->argument[1];
	uint64_t *old = (uint64_t *)call->argument[2], mask, now;

	memcpy(&mask, &u->uc_sigmask, sizeof(mask));
	now = mask;
	if (call->argument[3] != sizeof(mask))
		return -EINVAL;
	if (set && call->argument[0] == SIG_BLOCK)
		now |= *set;
	else if (set && call->argument[0] == SIG_UNBLOCK)
		now &= ~*set;
	else if (set && call->argument[0] == SIG_SETMASK)
		now = *set;
	else if (set)
		return -EINVAL;
	now &= ~trap_needs();
	memcpy(&u->uc_sigmask, &now, sizeof(now));
	if (old)
		*old = mask;
	return 0;
}

/* ---- the signal ---- */

static void trap_pass_on(int sig, siginfo_t *info, void *context)
{
	if (former.word == (uintptr_t)SIG_IGN)
		return;
	if (former.word != (uintptr_t)SIG_DFL) {
		former.handler(sig, info, context);
		return;
	}
	action_set(sig, &former, NULL);
	sys6(SYS_tgkill, sys6(SYS_getpid, 0, 0, 0, 0, 0, 0), sys6(SYS_gettid, 0, 0, 0, 0, 0, 0),
	     sig, 0, 0, 0);
}

/* Runs on our own stack. Stores into the thread's context come last, when the child of a fork has a
 * separate stack and the parent has waited for it. */
static void trap_serve(void *context)
{
	ucontext_t *u = context;
	greg_t *r = u->uc_mcontext.gregs;
	const enum what what = look_at(&room->call);
	long result;

	if (what == CANNOT) {
		trap_ops->lost((uintptr_t)r[REG_RSP]);
		trap_stop();
		r[REG_RIP] -= INSTRUCTION_BYTES;
		return;
	}
	if (what == FORKS) {
		result = trap_ops->forks(&room->call);
		trap_stop();
	} else {
		result = what == MASKS ? set_mask(&room->call, u) : trap_fork(&room->call);
		room->selector = BLOCK;
	}
	r[REG_RAX] = result;
}

static void on_call(int sig, siginfo_t *info, void *context)
{
	const greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (info->si_code != IS_DISPATCH || !armed || !pthread_equal(owner, pthread_self())) {
		trap_pass_on(sig, info, context);
		return;
	}
	room->selector = ALLOW;
	room->call = (struct trap_call){
		.number = info->si_arch == AUDIT_ARCH_X86_64 ? info->si_syscall : -1,
		.argument = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]}};
	sharing_on_stack(trap_serve, context, room->stack + STACK_BYTES);
}

uint64_t trap_needs(void)
{
	return signal_bit(SIGSYS);
}

bool trap_arm(const struct trap_ops *ops)
{
	const struct action mine = {.handler = on_call,
				    .flags = ACTION_FLAGS,
				    .restorer = RESTORER,
				    .mask = UINT64_MAX};

	if (trap_never || !room_open())
		return false;
	owner = pthread_self();
	trap_ops = ops;
	room->selector = ALLOW;
	if (trap_dispatch(1) < 0)
		return false;
	action_set(SIGSYS, &mine, &former);
	armed = true;
	room->selector = BLOCK;
	return true;
}

void trap_disarm(void)
{
	if (armed)
		trap_stop();
	action_set(SIGSYS, &former, NULL);
}

#else

uint64_t trap_needs(void)
{
	return 0;
}

bool trap_arm(const struct trap_ops *ops)
{
	(void)ops;
	return false;
}

long trap_fork(const struct trap_call *call)
{
	(void)call;
	return -ENOSYS;
}

void trap_disarm(void)
{
}

struct work {
	void (*fn)(void *arg);
	void *arg;
};

static void *trap_run(void *arg)
{
	const struct work *w = arg;

	w->fn(w->arg);
	return NULL;
}

bool trap_on_own_stack(void (*fn)(void *arg), void *arg)
{
	struct work w = {fn, arg};
	pthread_t helper;

	return room_open() && !pthread_create(&helper, NULL, trap_run, &w) &&
	       !pthread_join(helper, NULL);
}

#endif
