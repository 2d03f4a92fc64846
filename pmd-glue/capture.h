/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_CAPTURE_H
#define PMD_GLUE_CAPTURE_H
/*
 * Captures of a port's frames, both directions. The data path copies frames into rings
 * (host-abi/capture_ring.h), which a program reads (port_capture_begin()), or the control thread
 * for the setting `capture` (capture_file.c). A reader that cannot keep up misses frames, which are
 * counted; the wire never loses any.
 */
#include <stdint.h>

#include <rte_common.h>

#include "host-abi/capture_writer.h"
#include "pmd-glue/port.h"

struct port_queue;
struct rte_mbuf;

/* One capture of a port, from the side that writes. */
struct capture {
	struct capture_head
		*ring;	       /* control, atomic; NULL: there is none. Set last, cleared first */
	uint64_t queue_bytes;  /* control */
	uint32_t snap;	       /* control: most bytes of a frame */
	port_payload *payload; /* control; NULL: such frames are cut */
	struct {
		struct capture_writer writer;
	} __rte_cache_aligned queue[PORT_QUEUES_MAX]; /* its lcore */
};

/* Copies n frames into every capture of the port; leaves them as they are. Queue's lcore. */
void capture_frames(struct port_queue *q, struct rte_mbuf *const *frames, uint16_t n,
		    enum capture_direction direction);

/*
 * The capture of the setting: opens port->config.capture_path and begins. Control thread, port
 * stopped. 0; -ENOMEM; -errno of the file.
 */
int capture_file_open(struct port *port);

/* Writes what is left and closes. Control thread, port stopped. A no-op without such a capture. */
void capture_file_close(struct port *port);

#endif
