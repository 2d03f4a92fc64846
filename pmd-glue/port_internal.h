/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_PORT_INTERNAL_H
#define PMD_GLUE_PORT_INTERNAL_H
/*
 * A port from the inside. Each field names its writer: "create" (never changes while the port is
 * started), "control" (the control thread) or "queue" (the lcore that polls the queue).
 *
 * Frames between the two threads, per port:
 *   to_control[queue]  queue -> control   ARP, ND, ping as received; full: counted and freed
 *   from_control       control -> queue 0 answers and questions to send; full: counted and freed
 *   loop[queue]        queue -> itself    frames addressed to this port; full: tx_burst is short
 *   captures[].ring    queue -> reader    copies of frames; full: counted and left out
 */
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_spinlock.h>

#include "bond.h"
#include "capture.h"
#include "membership.h"
#include "pause.h"
#include "pmd-glue/port.h"
#include "neighbour.h"
#include "source_limit.h"

enum {
	PORTS_MAX = 16,
	CONTROL_RING_FRAMES = 256,
	LOOP_RING_FRAMES = 512,
	LINK_POLL_MS = 10,
	STATS_POLL_MS = 100,
	KERNEL_POLL_MS = 1000,
	MTU_FOR_ROCE_4096 = 4096 + PORT_ROCE_OVERHEAD,
};

struct impairment;
struct capture_file;
struct ring_wire;

/* What classification compares a frame with. Writer: create; port_move() while no lcore polls. */
struct port_filter {
	uint64_t mac;	  /* own MAC as the low 48 bits of a little-endian load */
	uint16_t vlan_be; /* VLAN id in network order, 0: untagged */
	uint8_t n_v4, n_v6;
	uint32_t v4_be[PORT_ADDRESSES_MAX];
	uint8_t v6[PORT_OWN_MAX][16];
};

struct port_queue {
	struct port *port;	       /* create */
	uint16_t id;		       /* create */
	uint16_t eth_id[BOND_DEVICES]; /* control, atomic; real drivers only: the devices that carry
					  traffic, equal if only one does */
	uint16_t spare_id;	       /* the same: the other device than eth_id[0] */
	bool has_spare;		       /* create */
	bool spare_copies;	       /* create: group datagrams on spare_id are duplicates */
	bool icrc_omitted;	       /* create: the peer may omit the ICRC; memif only */
	bool captured;		       /* control, atomic: some capture wants its frames */
	struct rte_ring *rx_ring;      /* create; ring ports only; of several queues: NULL, and */
	struct rte_ring *tx_ring;      /* `spread` has their rings */
	struct rte_ring *to_control;   /* create */
	struct rte_ring *from_control; /* create; NULL but on queue 0 */
	struct rte_ring *loop;	       /* create */
	struct referring *referring;   /* create; NULL: its frames have their payload with them */
	struct impairment *impair;     /* control, atomic, once; NULL: none yet */
	bool excluded;		       /* control, atomic: wants the poll_lock; memif only */
	rte_spinlock_t poll_lock;      /* memif only, see memif_gate.h */
	struct ring_spread *spread;    /* create */
	uint64_t count[PORT_COUNTER_COUNT]; /* queue */
	struct source_limit sources;	    /* queue; its key: create */
} __rte_cache_aligned;

/* A device that carries a port: that of its configuration, or its backup. */
struct eth_device {
	const char *device;	      /* as configured */
	uint16_t id;		      /* DPDK's number, */
	char name[PORT_DEVICE_BYTES]; /* and name */
	bool added;		      /* it is there because of us */
	bool hears_groups;	      /* all of them, or all frames */
	struct pause_stats pause;     /* of its driver */
};

/* The backend of a port type. All but tx_plain run on the control thread; 0 or -errno. */
struct port_driver {
	int (*create)(struct port *port);
	void (*destroy)(struct port *port);
	int (*start)(struct port *port);
	void (*stop)(struct port *port);
	void (*poll)(struct port *port, uint64_t now_ms); /* link state, driver's counters */
	uint32_t (*speed_mbps)(struct port *port);
	uint16_t (*rx_burst)(struct link_port *, uint16_t, struct rte_mbuf **, uint16_t);
	bool (*rx_pending)(struct link_port *, uint16_t); /* NULL: only rx_burst() tells */
	uint16_t (*tx_burst)(struct link_port *, uint16_t, struct rte_mbuf **, uint16_t);
	/* The port's groups have changed: lets their frames in. NULL: nothing keeps them out. */
	void (*update_groups)(struct port *port);
	/* tx_burst without impairment and locks; runs on the queue's lcore */
	uint16_t (*tx_plain)(struct port_queue *, struct rte_mbuf **, uint16_t);
};

struct port {
	struct link_port link; /* control, only while the data path is away. Must be first */
	const struct port_driver *driver; /* create */
	struct port_filter filter;	  /* see there */
	bool link_up;			  /* control, atomic; the data path reads it */
	bool listens;			  /* control, atomic: to some multicast group */
	bool wire_returns;		  /* create; the wire returns frames to their sender */
	struct rte_mempool *packet_pool;  /* create */
	struct rte_mempool *clone_pool;	  /* create */
	struct capture captures[PORT_CAPTURES_MAX];
	struct port_queue queue[PORT_QUEUES_MAX];

	/* control thread only */
	struct port_config config;
	unsigned int index; /* slot in the table of ports; makes names of rings unique */
	bool started;
	uint8_t mac[6];
	uint16_t mtu_bytes;
	char driver_name[PORT_NAME_BYTES];
	struct port_address own[PORT_OWN_MAX]; /* see struct port_info */
	unsigned int n_own;
	bool kernel_has[PORT_OWN_MAX]; /* the kernel answers for own[i] itself */
	struct neighbours neighbours;
	struct memberships groups;
	struct capture_file *capture_file; /* of the setting; NULL: none */
	uint64_t next_link_ms, next_stats_ms, next_kernel_ms, next_kick_ms;
	uint64_t control_count[PORT_COUNTER_COUNT];

	/* ring ports */
	struct ring_wire *wire;
	unsigned int wire_side;
	/* real drivers */
	struct eth_device eth[BOND_DEVICES];
	unsigned int eths, eth_now; /* how many there are; the (first) one that carries traffic */
	struct bond bond;
	bool eth_waiting;	     /* memif client: started, server not there yet */
	struct rte_mempool *rx_pool; /* packet_pool, or one of our own (af_xdp) */
};

_Static_assert(offsetof(struct port, link) == 0, "a link_port is the beginning of its port");

extern const struct port_driver ring_port_driver;
extern const struct port_driver eth_port_driver;
extern const struct port_driver memif_port_driver;

static inline void queue_count(struct port_queue *q, enum port_counter_id which, uint64_t n)
{
	__atomic_store_n(&q->count[which], q->count[which] + n, __ATOMIC_RELAXED);
}

static inline void control_count(struct port *port, enum port_counter_id which)
{
	uint64_t *c = &port->control_count[which];

	__atomic_store_n(c, *c + 1, __ATOMIC_RELAXED);
}

static inline bool port_link_is_up(const struct port *port)
{
	return __atomic_load_n(&port->link_up, __ATOMIC_RELAXED);
}

/* Sets the link state and logs and counts a change. Control thread. */
void port_set_link(struct port *port, bool up);
/* Tells the HCA that packets in flight are lost, and that retransmission can help now. Control
 * thread. */
void port_relinked(struct port *port);

/* The port in slot i of the daemon's table, or NULL; i < PORTS_MAX. Control thread. */
struct port *port_at(unsigned int i);

/* Monotonic milliseconds; control thread. */
uint64_t port_now_ms(void);

#endif
