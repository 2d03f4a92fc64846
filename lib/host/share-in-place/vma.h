/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_VMA_H
#define SHARING_VMA_H
/*
 * The kernel's mappings of this process, in order of address: queried one by one where possible
 * (PROCMAP_QUERY, Linux 6.11), else read from /proc/self/maps. Allocates nothing: it is used while
 * other threads are stopped, perhaps in malloc().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stands for the device of System V segments: their real one also holds files, whose inode may
 * equal a segment's number. */
#define VMA_SEGMENT UINT64_MAX

struct vma {
	uintptr_t start, end;
	uint64_t offset;	/* of start in the file */
	uint64_t device, inode; /* 0: no file */
	uint8_t protection;	/* PROT_* */
	bool shared;
	uint64_t page_bytes; /* 0: unknown, see vma_page_bytes() */
	char path[256];	     /* "" if none or too long; as in /proc/self/maps */
};

struct vma_reader {
	int fd;
	bool asks;	 /* PROCMAP_QUERY works */
	bool kept;	 /* vma_close() leaves the descriptor open */
	struct vma last; /* the last answer to a query; end is 0: none */
	size_t begin, end;
	char text[8192];
};

/* Makes readers use the text form always: for tests. */
extern bool vma_only_text;

/* 0, -errno. */
int vma_open(struct vma_reader *r);
/* The same with a descriptor that stays open, where queries work: opening it takes longer than all
 * queries of a registration. Callers hold the lock of all sharings. */
int vma_open_kept(struct vma_reader *r);
void vma_close(struct vma_reader *r);
/* Closes the descriptor that was kept. */
void vma_forget(void);
/* To be called when mappings have changed since it was opened. */
void vma_changed(struct vma_reader *r);
/* The mapping at addr, or the next one after it. Descending addresses cost more. False: none. */
bool vma_find(struct vma_reader *r, uintptr_t addr, struct vma *out);
/* The same, but finds only shared mappings of files; other mappings, however many, do not slow it
 * down. */
bool vma_find_shared(struct vma_reader *r, uintptr_t addr, struct vma *out);
/* The huge page size of a mapping, from smaps; 4096 if it has none or that is unknown. Slow. */
uint64_t vma_page_bytes(uintptr_t start);

#endif
