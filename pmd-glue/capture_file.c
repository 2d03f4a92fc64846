/* SPDX-License-Identifier: BSD-3-Clause */
/* The capture of the setting `capture`: reads its ring and writes a pcapng file. Control thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_cycles.h>

#include "base/log.h"
#include "base/pcapng.h"
#include "capture.h"
#include "port_internal.h"

enum { FILE_QUEUE_BYTES = 4 << 20 };

struct capture_file {
	FILE *file; /* NULL: a write has failed */
	struct capture_head *ring;
	uint64_t ring_bytes;
	uint64_t written; /* frames */
};

static int capture_file_begin(struct port *port, struct capture_file *c)
{
	uint64_t bytes = CAPTURE_HEAD_BYTES + (uint64_t)port->config.queues * FILE_QUEUE_BYTES;
	int error = pcapng_begin(c->file, port->config.name, PCAPNG_ETHERNET, 0);

	if (error)
		return error;
	/* Present when the data path gets there; a core dump shows no packets. */
	c->ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (c->ring == MAP_FAILED) {
		c->ring = NULL;
		return -errno;
	}
	c->ring_bytes = bytes;
	madvise(c->ring, bytes, MADV_DONTDUMP);
	return port_capture_begin(port, c->ring, bytes, 0, NULL);
}

int capture_file_open(struct port *port)
{
	const char *path = port->config.capture_path;
	struct capture_file *c = calloc(1, sizeof(*c));
	int error = 0;

	if (!c)
		return -ENOMEM;
	port->capture_file = c;
	c->file = pcapng_create(path);
	if (!c->file) {
		error = -errno;
		LOG(ERR, "port %s: cannot write %s: %s", port->config.name, path, strerror(-error));
	} else {
		error = capture_file_begin(port, c);
		if (error)
			LOG(ERR, "port %s: no capture: %s", port->config.name, strerror(-error));
	}
	if (error)
		capture_file_close(port);
	return error;
}

/* Gives up writing; the ring fills, and the data path counts what is missing. */
static void capture_file_give_up(struct port *port, int error)
{
	LOG(ERR, "port %s: writing %s failed: %s; capture ends here", port->config.name,
	    port->config.capture_path, strerror(-error));
	fclose(port->capture_file->file);
	port->capture_file->file = NULL;
}

/* At most what there is at the beginning. */
static int capture_file_flush_queue(struct capture_file *c, unsigned int queue)
{
	const struct capture_record *r;
	uint64_t end = __atomic_load_n(&c->ring->queue[queue].head, __ATOMIC_ACQUIRE);
	int error = 0;

	while (!error && c->ring->queue[queue].tail != end &&
	       (r = capture_next(c->ring, queue)) != NULL) {
		const struct pcapng_frame frame = capture_frame(c->ring, r);

		error = pcapng_frame(c->file, &frame);
		c->written += !error;
		capture_pass(c->ring, queue, r);
	}
	return error;
}

int port_capture_flush(struct port *port)
{
	struct capture_file *c = port->capture_file;
	int error = 0;

	if (!c || !c->file)
		return 0;
	for (unsigned int i = 0; i < port->config.queues && !error; i++)
		error = capture_file_flush_queue(c, i);
	if (!error && fflush(c->file) != 0)
		error = -errno;
	if (error)
		capture_file_give_up(port, error);
	return error;
}

void capture_file_close(struct port *port)
{
	struct capture_file *c = port->capture_file;

	if (!c)
		return;
	if (c->ring) {
		port_capture_flush(port);
		port_capture_end(port, c->ring);
	}
	if (c->file) {
		if (c->ring)
			pcapng_end(c->file, capture_time_ns(c->ring, rte_rdtsc()), c->written,
				   capture_dropped(c->ring));
		fclose(c->file);
	}
	if (c->ring)
		munmap(c->ring, c->ring_bytes);
	free(c);
	port->capture_file = NULL;
}
