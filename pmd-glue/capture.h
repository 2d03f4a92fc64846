/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_CAPTURE_H
#define PMD_GLUE_CAPTURE_H
/*
 * Capture of a port's frames, both directions, to a pcapng file. The data path copies frames into
 * mbufs of the capture's own pool and puts them on a ring; the control thread writes the file. If
 * it cannot keep up, frames are missing in the file (counted), never on the wire.
 *
 * The blocks are written here and not by librte_pcapng because that knows an interface only by its
 * ethdev number, which a ring port does not have, and lists every ethdev in every file.
 */
#include <stdint.h>

struct capture;
struct port;
struct port_queue;
struct rte_mbuf;

enum capture_direction {
	CAPTURE_IN = 1, /* the values of pcapng's epb_flags */
	CAPTURE_OUT = 2,
};

/*
 * Opens port->config.capture_path and the rings of all queues. Control thread, port stopped.
 * 0; -ENOMEM; -errno of the file.
 */
int capture_open(struct port *port);

/* Writes what is left and closes. Control thread, port stopped. A no-op without a capture. */
void capture_close(struct port *port);

/* Copies n frames; leaves them as they are. Queue's lcore. */
void capture_frames(struct port_queue *q, struct rte_mbuf *const *frames, uint16_t n,
		    enum capture_direction direction);

#endif
