/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of frames on the queue's lcore, pcapng blocks on the control thread; see capture.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "base/ring_look.h"
#include "base/limits.h"
#include "base/log.h"
#include "capture.h"
#include "pipeline/icrc.h"
#include "port_internal.h"

enum { CAPTURE_BUFFERS = 1023, OPTION_END = 0, OPTION_IF_NAME = 2, OPTION_IF_TSRESOL = 9 };

struct capture {
	FILE *file;
	uint64_t start_ns;  /* wall clock ... */
	uint64_t start_tsc; /* ... at this cycle */
	uint64_t hz;
};

/* pcapng blocks (draft-ietf-opsawg-pcapng), in host byte order as the format allows. */
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
	char name[PORT_NAME_BYTES];
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
	uint16_t end_option, end_length;
	uint32_t total_again;
} __attribute__((packed));

static int write_preamble(const struct capture *c, const char *name)
{
	struct section_block section = {
		.type = 0x0a0d0d0a,
		.total = sizeof(section),
		.magic = 0x1a2b3c4d,
		.major = 1,
		.section = -1,
		.total_again = sizeof(section),
	};
	struct interface_block interface = {
		.type = 1,
		.total = sizeof(interface),
		.link_type = 1, /* Ethernet */
		.name_option = OPTION_IF_NAME,
		.name_length = PORT_NAME_BYTES, /* padded with zeros */
		.resolution_option = OPTION_IF_TSRESOL,
		.resolution_length = 1,
		.resolution = {9}, /* nanoseconds */
		.total_again = sizeof(interface),
	};

	memcpy(interface.name, name, strnlen(name, PORT_NAME_BYTES - 1));
	if (fwrite(&section, sizeof(section), 1, c->file) != 1 ||
	    fwrite(&interface, sizeof(interface), 1, c->file) != 1 || fflush(c->file) != 0)
		return -errno;
	return 0;
}

static int write_frame(const struct capture *c, const struct rte_mbuf *m)
{
	static const uint8_t zero[4];
	uint32_t length = rte_pktmbuf_data_len(m);
	uint32_t pad = -length & 3;
	uint64_t passed = m->tx_offload - c->start_tsc;
	uint64_t ns =
		c->start_ns + passed / c->hz * 1000000000 + passed % c->hz * 1000000000 / c->hz;
	struct packet_block head = {
		.type = 6,
		.total = sizeof(head) + length + pad + sizeof(struct packet_tail),
		.time_high = ns >> 32,
		.time_low = (uint32_t)ns,
		.captured = length,
		.original = length,
	};
	struct packet_tail tail = {
		.flags_option = 2,
		.flags_length = 4,
		.flags = m->packet_type,
		.total_again = head.total,
	};

	if (fwrite(&head, sizeof(head), 1, c->file) != 1 ||
	    fwrite(rte_pktmbuf_mtod(m, void *), 1, length, c->file) != length ||
	    fwrite(zero, 1, pad, c->file) != pad || fwrite(&tail, sizeof(tail), 1, c->file) != 1)
		return -errno;
	return 0;
}

void capture_frames(struct port_queue *q, struct rte_mbuf *const *frames, uint16_t n,
		    enum capture_direction direction)
{
	uint64_t now = rte_rdtsc();

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *copy = NULL;

		if (!rte_ring_full(q->capture))
			copy = rte_pktmbuf_copy(frames[i], q->port->capture_pool, 0, UINT32_MAX);
		if (!copy || copy->nb_segs != 1) {
			rte_pktmbuf_free(copy);
			queue_count(q, PORT_COUNTER_capture_missed, 1);
			continue;
		}
		icrc_complete(copy);
		copy->tx_offload = now;
		copy->packet_type = direction;
		rte_ring_sp_enqueue(q->capture, copy);
	}
}

static void free_rings(struct port *port)
{
	void *m;

	for (unsigned int i = 0; i < port->config.queues; i++) {
		struct rte_ring *ring = port->queue[i].capture;

		while (ring && rte_ring_sc_dequeue(ring, &m) == 0)
			rte_pktmbuf_free(m);
		rte_ring_free(ring);
		port->queue[i].capture = NULL;
	}
}

static int make_buffers(struct port *port)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "port%u_capture", port->index);
	port->capture_pool = rte_pktmbuf_pool_create(name, CAPTURE_BUFFERS, 0, 0, PACKET_ROOM_BYTES,
						     port->config.socket);
	if (!port->capture_pool)
		return -ENOMEM;
	for (unsigned int i = 0; i < port->config.queues; i++) {
		snprintf(name, sizeof(name), "port%u_capture%u", port->index, i);
		port->queue[i].capture =
			rte_ring_create(name, CAPTURE_RING_FRAMES, port->config.socket,
					RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (!port->queue[i].capture)
			return -ENOMEM;
	}
	return 0;
}

/* What programs say to each other, keys and all, is for the daemon's user only: an existing file is
 * used if it is his, a plain one and nobody's link. Never waits, as opening a FIFO would. */
static FILE *open_private(const char *path)
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

static struct capture *open_file(const char *path)
{
	struct capture *c = calloc(1, sizeof(*c));
	struct timespec now;

	if (!c)
		return NULL;
	c->file = open_private(path);
	if (!c->file) {
		free(c);
		return NULL;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	c->start_tsc = rte_rdtsc();
	c->start_ns = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	c->hz = rte_get_tsc_hz();
	return c;
}

int capture_open(struct port *port)
{
	const char *path = port->config.capture_path;
	int error;

	port->capture_file = open_file(path);
	if (!port->capture_file) {
		error = errno ? -errno : -ENOMEM;
		LOG(ERR, "port %s: cannot write %s: %s", port->config.name, path, strerror(-error));
		return error;
	}
	error = write_preamble(port->capture_file, port->config.name);
	if (!error)
		error = make_buffers(port);
	if (error) {
		LOG(ERR, "port %s: no capture: %s", port->config.name, strerror(-error));
		capture_close(port);
	}
	return error;
}

/* Gives up writing; the data path's ring fills, and it counts what is missing. */
static void give_up(struct port *port, int error)
{
	LOG(ERR, "port %s: writing %s failed: %s; capture ends here", port->config.name,
	    port->config.capture_path, strerror(-error));
	fclose(port->capture_file->file);
	free(port->capture_file);
	port->capture_file = NULL;
}

static int flush_queue(struct port *port, struct port_queue *q)
{
	struct rte_mbuf *m[BURST];
	unsigned int left = ring_used(q->capture);
	int error = 0;

	while (left > 0) {
		unsigned int n = rte_ring_sc_dequeue_burst(q->capture, (void **)m, BURST, NULL);

		for (unsigned int i = 0; i < n && !error; i++) {
			error = write_frame(port->capture_file, m[i]);
			if (!error)
				control_count(port, PORT_COUNTER_captured);
		}
		rte_pktmbuf_free_bulk(m, n);
		if (error || n == 0)
			break;
		left -= RTE_MIN(left, n);
	}
	return error;
}

int port_capture_flush(struct port *port)
{
	int error = 0;

	if (!port->capture_file)
		return 0;
	for (unsigned int i = 0; i < port->config.queues && !error; i++)
		error = flush_queue(port, &port->queue[i]);
	if (!error && fflush(port->capture_file->file) != 0)
		error = -errno;
	if (error)
		give_up(port, error);
	return error;
}

void capture_close(struct port *port)
{
	port_capture_flush(port);
	if (port->capture_file) {
		fclose(port->capture_file->file);
		free(port->capture_file);
		port->capture_file = NULL;
	}
	free_rings(port);
	rte_mempool_free(port->capture_pool);
	port->capture_pool = NULL;
}
