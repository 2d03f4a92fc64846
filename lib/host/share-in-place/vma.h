/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_VMA_H
#define SHARING_VMA_H
/*
 * The kernel's mappings of this process, in order of address. Asks the kernel one by one where it
 * can be asked (PROCMAP_QUERY, Linux 6.11), else reads /proc/self/maps. Allocates nothing: used
 * while other threads are stopped, perhaps in malloc().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In place of a device: System V segments, whose inodes are their numbers, share one with files
 * that have the same. */
#define VMA_SEGMENT UINT64_MAX

struct vma {
	uintptr_t start, end;
	uint64_t offset;	/* of start in the file */
	uint64_t device, inode; /* 0: no file */
	uint8_t protection;	/* PROT_* */
	bool shared;
	uint64_t page_bytes; /* 0: not known, see vma_page_bytes() */
	char path[256];	     /* "" if none or too long; as in /proc/self/maps */
};

struct vma_reader {
	int fd;
	bool asks; /* the kernel answers questions */
	size_t begin, end;
	char text[8192];
};

/* Lets readers read text even where the kernel could be asked: for tests. */
extern bool vma_only_text;

/* 0, -errno. */
int vma_open(struct vma_reader *r);
void vma_close(struct vma_reader *r);
/* Mappings have changed since it was opened. */
void vma_changed(struct vma_reader *r);
/* The mapping at addr, or the next after it. Addresses asked for may go down, at some cost. False:
 * there is none. */
bool vma_find(struct vma_reader *r, uintptr_t addr, struct vma *out);
/* Bytes of the huge pages that a mapping consists of, from smaps, 4096 if it is none or cannot be
 * known. Slow. */
uint64_t vma_page_bytes(uintptr_t start);

#endif
