/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_PORT_H
#define PMD_GLUE_PORT_H
/*
 * One Ethernet port of an HCA, whatever carries it: two rings, or any DPDK driver.
 *
 * Two kinds of thread use a port:
 *  - the data path: port_link()'s rx_burst and tx_burst, and nothing else. rx_burst and tx_burst of
 *    one queue belong to ONE lcore; different queues may be on different lcores. rx_burst must be
 *    called regularly even when nothing is expected: it also sends what the control thread wants
 *    sent, and what the impairment setting holds back;
 *  - the control thread: every function below. One thread at a time over all ports.
 * Between the two there are only single-producer single-consumer rings, no locks (the one
 * exception, memif, is explained in memif_gate.h).
 *
 */
#include <stdbool.h>
#include <stdint.h>

#include "link/link_port.h"

struct rte_mempool;
struct port;

enum {
	PORT_NAME_BYTES = 32,
	PORT_DEVICE_BYTES = 128,
	PORT_PATH_BYTES = 256,
	PORT_ADDRESSES_MAX = 4,		       /* configured ... */
	PORT_OWN_MAX = 1 + PORT_ADDRESSES_MAX, /* ... and all that a port has */
	PORT_QUEUES_MAX = 8,
	PORT_RING_FRAMES = 512,	 /* depth of a ring port */
	PORT_ROCE_OVERHEAD = 80, /* bytes of an interface MTU that RoCE headers may take */
};

enum port_type {
	PORT_RING,	/* two HCAs of one daemon, joined; or one HCA with itself */
	PORT_MEMIF,	/* another process on this host; its memory is trusted by the driver */
	PORT_AF_PACKET, /* any kernel interface; needs CAP_NET_RAW */
	PORT_TAP, /* the kernel of this host at the other end, path MTU 1024; needs CAP_NET_ADMIN */
	PORT_AF_XDP, /* kernel interface, faster, path MTU 2048 at most; needs CAP_NET_ADMIN, BPF */
	PORT_PCI,    /* a device of its own */
	PORT_TYPE_COUNT
};

/* An IP address of the port. IPv4 is kept as ::ffff:a.b.c.d (the GID of it). */
struct port_address {
	bool v6;
	uint8_t ip[16];
	uint8_t prefix_len; /* as written: 0..32 for IPv4, 0..128 for IPv6 */
};

/*
 * Faults on the transmit side, for tests of what is above. Probabilities are per frame, 0..1, drawn
 * from a generator seeded with `seed` and the queue number: the same frames meet the same fate in
 * each run. Frames of the control thread (ARP ...) are exempt, so that they do not disturb that.
 */
struct port_impairment {
	double loss;	    /* frame is dropped */
	double duplicate;   /* frame is sent twice */
	double reorder;	    /* frame is held back until 1 to 4 later ones have passed, or 1 ms */
	double corrupt;	    /* one bit behind the Ethernet header is flipped, in a copy */
	uint32_t delay_us;  /* each frame is held back this long */
	uint32_t jitter_us; /* plus 0..jitter_us, evenly distributed; never reorders */
	uint64_t seed;
};

struct port_config {
	char name[PORT_NAME_BYTES]; /* unique in the daemon, not empty */
	enum port_type type;
	/*
	 * af_packet, af_xdp: the kernel interface. tap: the interface to create. memif: the
	 * socket's path. PCI: the address, 0000:03:00.0. ring: unused.
	 */
	char device[PORT_DEVICE_BYTES];
	char peer[PORT_NAME_BYTES]; /* ring: name of the port at the other end; may be its own */
	bool memif_server;
	uint32_t memif_id;
	uint8_t mac[6]; /* all zero: the device's own (ring, memif, tap: made from address[0]) */
	struct port_address address[PORT_ADDRESSES_MAX];
	unsigned int n_addresses;
	bool has_gateway_v4, has_gateway_v6;
	uint8_t gateway_v4[16]; /* ::ffff:a.b.c.d */
	uint8_t gateway_v6[16];
	uint16_t vlan; /* 0: untagged */
	/*
	 * Interface MTU wanted. 0: what RoCE with path MTU 4096 needs, or as near as the driver
	 * gets; except on af_packet and af_xdp, where 0 leaves the kernel's setting as it is.
	 */
	uint16_t mtu_bytes;
	unsigned int queues; /* 1..PORT_QUEUES_MAX; ring: the same at both ends, queue i meets i */
	int socket; /* NUMA node that its rings and queues shall lie on, or SOCKET_ID_ANY */
	struct port_impairment impairment;
	char capture_path[PORT_PATH_BYTES]; /* pcapng file of both directions; empty: none */
};

struct port_info {
	uint8_t mac[6];
	bool link_up;
	uint32_t link_speed_mbps; /* 0: unknown */
	uint16_t mtu_bytes;	  /* interface MTU */
	uint16_t path_mtu_bytes;  /* largest RoCE path MTU that fits: 256 .. 4096; 0: none fits */
	uint16_t vlan;
	char driver[PORT_NAME_BYTES]; /* "ring", "net_af_packet", ... */
	/* The IPv6 link-local address made from the MAC, as any kernel has it; then the configured
	 * ones in their order. Never changes. */
	struct port_address address[PORT_OWN_MAX];
	unsigned int n_addresses;
};

enum port_counter_id {
#define PORT_COUNTER(name, text) PORT_COUNTER_##name,
#include "pmd-glue/port_counters.def"
#undef PORT_COUNTER
	PORT_COUNTER_COUNT
};

/*
 * Creates a port, stopped. The config is copied. packet_pool (direct mbufs, private area, room for
 * a whole frame) and clone_pool (mbufs with at least the same private area; no data room needed)
 * remain the caller's and must outlive the port. packet_pool feeds the receive queues and answers.
 *
 * Ring: the port is usable at once; it is joined when a port named config->peer that names this one
 * as its peer exists, in whichever order the two are created.
 *
 * 0; -EINVAL: configuration contradicts itself (a log line says how); -EEXIST: name is taken;
 * -ENODEV: no such device or its driver is missing; -ENOTSUP: the device cannot do it (queues,
 * MTU); -ENOMEM; -EIO: the driver refused.
 */
int port_create(const struct port_config *config, struct rte_mempool *packet_pool,
		struct rte_mempool *clone_pool, struct port **out);

/*
 * Brings the port up. A memif client whose server is not there yet starts too and keeps trying.
 * 0 (also if started already); -EIO: the driver refused, the log says what.
 */
int port_start(struct port *port);

/* Takes the port down. The data path must have left this port before. Frames under way are freed.
 */
void port_stop(struct port *port);

/* Stops if need be, and frees everything. NULL is allowed. */
void port_destroy(struct port *port);

/* What the HCA sends and receives through; valid until port_destroy. */
struct link_port *port_link(struct port *port);

const char *port_name(const struct port *port);

/* What is known about the port now. Never fails. */
void port_info(struct port *port, struct port_info *info);

/*
 * Finds the MAC address of the next hop to `ip` (IPv4 as ::ffff:a.b.c.d): the address itself if an
 * address of the port has it in its prefix (IPv6 link-local always is), else the gateway.
 *
 * 0: mac_out is set (multicast and the port's own addresses, with its own MAC: always); -EAGAIN:
 * the question is on the wire, poll again; -EHOSTUNREACH: no route, or no answer within 2.5 s
 * (asked 6 times).
 */
int port_resolve(struct port *port, const uint8_t ip[16], uint8_t mac_out[6]);
/* Would that put a question on the wire that is not there yet? */
bool port_would_ask(struct port *port, const uint8_t ip[16]);

/*
 * Which of the port's addresses (index in port_info.address) it would send from to `ip`, a unicast
 * or multicast address: that address itself if it is the port's own, else one with `ip` in its
 * prefix, else the first of the family, a link-local one only where nothing else will do.
 * -ENETUNREACH: there is no route.
 */
int port_source(const struct port *port, const uint8_t ip[16]);

/*
 * One more, or one less, who listens to the multicast group ip (IPv4 as ::ffff:a.b.c.d). While
 * somebody does, frames to the group come in, and routers and switches are told by IGMPv3 or MLDv2,
 * as a kernel would; and RoCE frames that this port sends to any group are also received by it,
 * whatever the group. 0; -ENOMEM. port_leave: ip was joined. Groups end with the port; nothing is
 * said then.
 */
int port_join(struct port *port, const uint8_t ip[16]);
void port_leave(struct port *port, const uint8_t ip[16]);

/*
 * The control thread's turn, to be called about every millisecond: answers ARP, neighbour
 * discovery and ping for addresses that no kernel serves; repeats questions; reports groups;
 * watches the link; flushes the capture. Bounded: at most a ring of frames per call.
 */
void port_poll_control(struct port *port);

/*
 * Writes captured frames to the file; part of port_poll_control. 0; or -errno of the write that
 * failed, after which the capture is closed (the log says so).
 */
int port_capture_flush(struct port *port);

/* Value of counter i (enum port_counter_id), summed over the queues; may be a moment old. */
uint64_t port_counter(const struct port *port, unsigned int i);
/* Name, and the sentence that explains it; static storage. i < PORT_COUNTER_COUNT. */
const char *port_counter_name(unsigned int i);
const char *port_counter_text(unsigned int i);

/*
 * The NUMA node of the device behind a port that need not have been created, read below `sysfs`
 * ("/sys"). -1: unknown, as it is of ports without a device of their own (ring, memif, tap).
 */
int port_node(const struct port_config *config, const char *sysfs);

/* "ring", "memif", ... for a type; NULL if it is none. */
const char *port_type_name(enum port_type type);
/* The reverse; -1 if there is none. */
int port_type_parse(const char *name);

/*
 * Adds a virtual device to EAL while it runs, so that nothing needs to be on its command line:
 * name is the driver's with a number behind it ("net_af_packet0"), args as in --vdev.
 * 0; -EEXIST: there is one of that name; -ENODEV: no such driver, or it refused.
 */
int port_eal_vdev(const char *name, const char *args);
/* Takes a device away again. bus: "vdev" or "pci". 0 or -errno. */
int port_eal_remove(const char *bus, const char *name);

#endif
