/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_CLIENT_MEMORY_H
#define CONTROL_CLIENT_MEMORY_H
/* Client memory in the daemon: mapping and guarding it. Control thread, except the handlers. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Client memory mapped into the daemon. */
struct mapping {
	uint8_t *base;
	uint64_t bytes;
	uint64_t page_bytes;
	bool reports_residence; /* the kernel reports which of its pages are present */
	uint32_t range;		/* in the SIGBUS handler's table */
};

enum { MEMORY_SEAL_SEALED = 1 /* requires F_SEAL_SEAL, too */ };
/* Maps a sealed memfd of exactly `bytes` and guards it. 0; -EINVAL with *why: what is wrong with
 * it; -ENOSPC; -errno. */
int memory_map(int fd, uint64_t bytes, unsigned int flags, struct mapping *m, const char **why);
/* Maps [offset, offset + bytes) of a memory file at an address congruent to the offset modulo 2
 * MiB, or 1 GiB if it is that large, and guards it. Touches none of it. The same errors. */
int memory_map_piece(int fd, uint64_t offset, uint64_t bytes, bool read_only, struct mapping *m,
		     const char **why);
/* Maps those pages of [offset, offset + bytes) that exist, to spare the data path the faults.
 * Allocates no others: they would be charged to us, not to the client. */
void memory_populate(const struct mapping *m, uint64_t offset, uint64_t bytes);
/* Guards memory mapped by other means; on failure unmaps it. The same errors. */
int memory_adopt(void *at, uint64_t bytes, uint64_t page_bytes, int protection, struct mapping *m,
		 const char **why);
void memory_unmap(struct mapping *m);
/*
 * To map or unmap a file, the kernel takes a lock of the file. A process that punches a hole holds
 * that lock while the hole is unmapped everywhere, and the file's owner may have mapped it
 * thousands of times. wait_ns() returns how long the thread has waited in the kernel since
 * wait_begin(): 0 if that was short, or if it was only preempted. Async-signal-safe.
 */
struct wait {
	uint64_t since_ns;
	long switches;
};
struct wait wait_begin(void);
uint64_t wait_ns(const struct wait *w);
/* For unmapping by hand: first stop guarding its pages; then, when all is unmapped, stop counting
 * it against the kernel's limit of mappings. */
void memory_unguard(uint32_t range);
void memory_forget(uint32_t range);
/* How many mappings the process may guard; more are refused with -ENOSPC. */
uint32_t memory_ranges_max(void);
/* Pages of the mapping that were missing when touched. */
uint64_t memory_faults(const struct mapping *m);
/* The same for all mappings so far. */
uint64_t memory_faults_total(void);
/* The user to charge for holes in the mapping. */
void memory_set_owner(const struct mapping *m, uid_t uid);
/* How long holes in the mapping have held up threads since the last call. */
uint64_t memory_held_up_ns(const struct mapping *m);
/* How often holes have held up threads, for all mappings so far. */
uint64_t memory_held_up_total(void);
/* Installs the handlers of SIGBUS and of control_thread_waits(). 0 or -errno. */
int memory_guard(void);

#endif
