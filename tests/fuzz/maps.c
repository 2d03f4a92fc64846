/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's list of a process's mappings as text: names in it are of files that anybody made.
 *
 * Input: addresses to look up (their number, then four bytes each, the upper ones of the address),
 * then the list.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "vma.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vma_reader *r;
	static int fd = -1;
	struct fuzz_bytes b = {data, size};
	uint8_t lookups = fuzz_u8(&b) % 8;
	uint32_t at[8];
	struct vma found;

	if (fd < 0)
		fd = memfd_create("maps", MFD_CLOEXEC);
	r = malloc(sizeof(*r)); /* ends with the text: a sanitizer sees what is read behind it */
	REQUIRE(r && fd >= 0);
	*r = (struct vma_reader){.fd = fd};
	for (unsigned int i = 0; i < lookups; i++)
		at[i] = fuzz_u32(&b);
	REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, b.at, b.left, 0) == (ssize_t)b.left);
	for (unsigned int i = 0; i < lookups; i++) {
		if (!vma_find(r, (uintptr_t)at[i] << 16, &found))
			continue;
		REQUIRE(found.end > (uintptr_t)at[i] << 16);
		REQUIRE(memchr(found.path, 0, sizeof(found.path)));
	}
	free(r);
	return 0;
}
