/* SPDX-License-Identifier: BSD-3-Clause */
/* pcapng blocks, in host byte order as the format allows. See pcapng.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/pcapng.h"

enum block_type {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6
};

enum option_code {
	OPTION_END = 0,
	IF_NAME = 2,
	IF_TSRESOL = 9,
	EPB_FLAGS = 2,
	EPB_DROPCOUNT = 4,
	ISB_IFRECV = 4,
	ISB_IFDROP = 5,
};

struct section_block {
	uint32_t type, total, magic;
	uint16_t major, minor;
	int64_t section;
	uint32_t total_again;
} __attribute__((packed));

struct interface_block {
	uint32_t type, total;
	uint16_t link_type, reserved;
	uint32_t snap;
	uint16_t name_option, name_length;
	char name[PCAPNG_NAME_BYTES];
	uint16_t resolution_option, resolution_length;
	uint8_t resolution[4];
	uint16_t end_option, end_length;
	uint32_t total_again;
} __attribute__((packed));

struct packet_block {
	uint32_t type, total, interface, time_high, time_low, captured, original;
} __attribute__((packed));

struct packet_tail {
	uint16_t flags_option, flags_length;
	uint32_t flags;
	uint16_t drop_option, drop_length;
	uint64_t dropped;
	uint16_t end_option, end_length;
	uint32_t total_again;
} __attribute__((packed));

struct statistics_block {
	uint32_t type, total, interface, time_high, time_low;
	uint16_t received_option, received_length;
	uint64_t received;
	uint16_t drop_option, drop_length;
	uint64_t dropped;
	uint16_t end_option, end_length;
	uint32_t total_again;
} __attribute__((packed));

static int pcapng_put(FILE *f, const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, f) == n)
		return 0;
	return errno ? -errno : -EIO;
}

FILE *pcapng_create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	FILE *file = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0) {
		errno = EPERM;
		if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
		    fchmod(fd, 0600) == 0 && ftruncate(fd, 0) == 0)
			file = fdopen(fd, "wb");
	}
	if (!file)
		close(fd);
	return file;
}

int pcapng_begin(FILE *f, const char *name, enum pcapng_link link, uint32_t snap)
{
	const struct section_block section = {
		.type = BLOCK_SECTION,
		.total = sizeof(section),
		.magic = 0x1a2b3c4d,
		.major = 1,
		.section = -1,
		.total_again = sizeof(section),
	};
	struct interface_block interface = {
		.type = BLOCK_INTERFACE,
		.total = sizeof(interface),
		.link_type = link,
		.snap = snap,
		.name_option = IF_NAME,
		.name_length = sizeof(interface.name), /* padded with zeros */
		.resolution_option = IF_TSRESOL,
		.resolution_length = 1,
		.resolution = {9}, /* nanoseconds */
		.end_option = OPTION_END,
		.total_again = sizeof(interface),
	};
	size_t length = strlen(name);
	int error;

	memcpy(interface.name, name,
	       length < sizeof(interface.name) ? length : sizeof(interface.name) - 1);
	error = pcapng_put(f, &section, sizeof(section));
	if (!error)
		error = pcapng_put(f, &interface, sizeof(interface));
	return error || fflush(f) == 0 ? error : -errno;
}

int pcapng_frame(FILE *f, const struct pcapng_frame *frame)
{
	static const uint8_t zero[4];
	const uint32_t pad = -frame->captured & 3;
	const struct packet_block head = {
		.type = BLOCK_PACKET,
		.total = sizeof(head) + frame->captured + pad + sizeof(struct packet_tail),
		.time_high = frame->time_ns >> 32,
		.time_low = (uint32_t)frame->time_ns,
		.captured = frame->captured,
		.original = frame->original,
	};
	const struct packet_tail tail = {
		.flags_option = EPB_FLAGS,
		.flags_length = sizeof(tail.flags),
		.flags = frame->direction,
		.drop_option = EPB_DROPCOUNT,
		.drop_length = sizeof(tail.dropped),
		.dropped = frame->dropped,
		.end_option = OPTION_END,
		.total_again = head.total,
	};
	int error = pcapng_put(f, &head, sizeof(head));

	if (!error)
		error = pcapng_put(f, frame->bytes, frame->captured);
	if (!error)
		error = pcapng_put(f, zero, pad);
	return error ? error : pcapng_put(f, &tail, sizeof(tail));
}

int pcapng_end(FILE *f, uint64_t time_ns, uint64_t captured, uint64_t dropped)
{
	const struct statistics_block block = {
		.type = BLOCK_STATISTICS,
		.total = sizeof(block),
		.time_high = time_ns >> 32,
		.time_low = (uint32_t)time_ns,
		.received_option = ISB_IFRECV,
		.received_length = sizeof(block.received),
		.received = captured + dropped,
		.drop_option = ISB_IFDROP,
		.drop_length = sizeof(block.dropped),
		.dropped = dropped,
		.end_option = OPTION_END,
		.total_again = sizeof(block),
	};

	return pcapng_put(f, &block, sizeof(block));
}
