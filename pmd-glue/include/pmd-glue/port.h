/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_PORT_H
#define PMD_GLUE_PORT_H
/*
 * One Ethernet port of an HCA, whatever carries it: two rings, or any DPDK driver.
 *
 * Two kinds of thread use a port:
 *  - the data path: port_link()'s rx_burst and tx_burst, and nothing else. rx_burst and tx_burst of
 *    one queue belong to ONE lcore; different queues may be on different lcores. rx_burst must be
 *    called regularly even if nothing is expected: it also sends the control thread's frames, and
 *    those delayed by the impairment;
 *  - the control thread: every function below. One thread at a time over all ports.
 * Between the two there are only single-producer single-consumer rings, no locks (the one
 * exception, memif, is explained in memif_gate.h).
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
	PORT_OWN_MAX = 1 + PORT_ADDRESSES_MAX, /* ... and all of a port */
	PORT_QUEUES_MAX = 8,
	PORT_CAPTURES_MAX = 4,	 /* at once, that of the setting included */
	PORT_RING_FRAMES = 512,	 /* depth of a ring port; of all rings to one of its queues */
	PORT_ROCE_OVERHEAD = 80, /* bytes of an interface MTU that RoCE headers may take */
};

enum port_type {
	PORT_RING,	/* two HCAs of one daemon, connected; or one HCA looped back */
	PORT_MEMIF,	/* another process on this host; its memory is trusted by the driver */
	PORT_AF_PACKET, /* any kernel interface; needs CAP_NET_RAW, CAP_NET_ADMIN */
	PORT_TAP,    /* this host's kernel at the other end, path MTU 1024; needs CAP_NET_ADMIN */
	PORT_AF_XDP, /* kernel interface, faster, path MTU 2048 at most; needs CAP_NET_ADMIN, BPF */
	PORT_PCI,    /* an unshared device */
	PORT_TYPE_COUNT
};

/* Which of two interfaces carry the traffic of a port, in the words of Linux's bonding. */
enum port_bond_mode {
	BOND_ACTIVE_BACKUP, /* one, and the other when its link fails */
	BOND_BALANCE_XOR,   /* both; each queue pair uses one */
};

/* An IP address of the port. IPv4 is stored as ::ffff:a.b.c.d, its GID. */
struct port_address {
	bool v6;
	uint8_t ip[16];
	uint8_t prefix_len; /* as written: 0..32 for IPv4, 0..128 for IPv6 */
};

/* The configured addresses of a port. */
struct port_addresses {
	struct port_address at[PORT_ADDRESSES_MAX];
	unsigned int count;
};

/*
 * Faults on the transmit side, for tests of the layers above. Probabilities are per frame, 0..1,
 * drawn from a generator seeded with `seed` and the queue number: the same frames suffer the same
 * faults in each run. Frames of the control thread (ARP ...) are exempt.
 */
struct port_impairment {
	double loss;	    /* frame is dropped */
	double duplicate;   /* frame is sent twice */
	double reorder;	    /* frame is overtaken by 1 to 4 later ones, or delayed by 1 ms */
	double corrupt;	    /* one bit after the Ethernet header is flipped, in a copy */
	double mark;	    /* frame that allows it (ECT) is marked as congested (CE), in a copy */
	uint32_t delay_us;  /* delay of each frame */
	uint32_t jitter_us; /* plus 0..jitter_us, evenly distributed; never reorders */
	uint32_t rate_mbps; /* of a link that frames pass one by one before that; 0: any */
	uint64_t seed;
};

/* Next hops for what is in no prefix of the port's addresses. */
struct port_gateways {
	bool has_v4, has_v6;
	uint8_t v4[16]; /* ::ffff:a.b.c.d */
	uint8_t v6[16];
};

struct port_config {
	char name[PORT_NAME_BYTES]; /* unique in the daemon, not empty */
	enum port_type type;
	/*
	 * af_packet, af_xdp: the kernel interface. tap: the interface to create. memif: the
	 * socket's path. PCI: the address, 0000:03:00.0. ring: unused.
	 */
	char device[PORT_DEVICE_BYTES];
	/* af_packet: the interface that takes over while the device's link is down, or shares its
	 * traffic. Frames keep their source address; neighbours learn where it is now. Empty:
	 * none. */
	char backup[PORT_DEVICE_BYTES];
	uint16_t failover_ms; /* with a backup: interval between checks of the links; at least 1 */
	uint16_t updelay; /* with a backup: how long a link that came back must have been up, ms */
	enum port_bond_mode bond_mode; /* what the backup is for */
	char peer[PORT_NAME_BYTES];    /* ring: name of the port at the other end; may be its own */
	bool memif_server;
	uint32_t memif_id;
	bool icrc_omitted; /* memif: accepts frames without ICRC */
	uint8_t mac[6]; /* all zero: the device's own (ring, memif, tap: from the first address) */
	struct port_addresses addresses;
	struct port_gateways gateways;
	uint16_t vlan; /* 0: untagged */
	/*
	 * Requested interface MTU. 0: what RoCE with path MTU 4096 needs, or the driver's
	 * closest; except on af_packet and af_xdp, where 0 keeps the kernel's setting.
	 */
	uint16_t mtu_bytes;
	unsigned int queues; /* 1..PORT_QUEUES_MAX; ring: as many as the peer's */
	int socket;	     /* NUMA node for rings and queues, or SOCKET_ID_ANY */
	struct port_impairment impairment;
	char capture_path[PORT_PATH_BYTES]; /* pcapng file of both directions; empty: none */
};

struct port_info {
	uint8_t mac[6];
	bool link_up;
	uint8_t carriers;	  /* bit 0: the device carries traffic; bit 1: the backup does */
	uint32_t link_speed_mbps; /* sum of the carriers; 0: unknown */
	uint16_t mtu_bytes;	  /* interface MTU */
	uint16_t path_mtu_bytes;  /* largest RoCE path MTU that fits: 256 .. 4096; 0: none fits */
	uint16_t vlan;
	char driver[PORT_NAME_BYTES]; /* "ring", "net_af_packet", ... */
	/* The IPv6 link-local address made from the MAC, as in any kernel; then the configured ones
	 * in order. */
	struct port_address address[PORT_OWN_MAX];
	unsigned int n_addresses;
};

enum port_counter_id {
#define PORT_COUNTER(name, text) PORT_COUNTER_##name,
#include "pmd-glue/port_counters.def"
#undef PORT_COUNTER
	PORT_COUNTER_COUNT
};

/* How many bytes of memory opening that port locks, where the kernel limits that; 0: none. */
uint64_t port_locked_bytes(const struct port_config *config);

/*
 * The addresses that the kernel has on the interface of a port of type af_packet or af_xdp, up to
 * PORT_ADDRESSES_MAX, without link-local ones, which a port makes itself. None: of other types, and
 * if there is no such interface. Any thread; system calls.
 */
void port_kernel_addresses(enum port_type type, const char *device, struct port_addresses *out);

/*
 * Creates a port, stopped. The config is copied. packet_pool (direct mbufs, private area, room for
 * a whole frame) and clone_pool (mbufs with at least the same private area; no data room needed)
 * remain the caller's and must outlive the port. packet_pool serves the receive queues and answers.
 *
 * Ring: the port is usable at once; it is connected when a port named config->peer exists that
 * names this one as its peer, in whichever order the two are created.
 *
 * 0; -EINVAL: the configuration is inconsistent (see the log); -EEXIST: name is taken;
 * -ENODEV: no such device or its driver is missing; -ENOTSUP: the device lacks support (queues,
 * MTU); -ENOMEM; -EIO: the driver refused; -EBUSY: another user of DPDK has the mbuf flag of
 * pipeline/icrc.h.
 */
int port_create(const struct port_config *config, struct rte_mempool *packet_pool,
		struct rte_mempool *clone_pool, struct port **out);

/*
 * Says where the payload is to which the frame refers (PAYLOAD_REF in pipeline/frame_marks.h) that
 * has the reference at `place`: `bytes` at *at, valid until the end of the lcore's current poll. 0;
 * -EAGAIN: ask again at the next poll; -ENOENT: it is gone. Queue's lcore.
 */
typedef int port_payload_place(const uint8_t *place, const uint8_t **at, uint32_t *bytes);
/*
 * Makes a port with a driver, before it is started, take frames that refer to their payload, all of
 * whose references are held on the queue's lcore; never trains. Ring ports take both anyway. 0;
 * -ENOTSUP: its driver takes no frames in pieces, or reads them after it has returned; -ENOMEM.
 */
int port_refer(struct port *port, port_payload_place *find);

/*
 * Brings the port up. A memif client without a server starts too and keeps trying. 0 (also if
 * already started); -EIO: the driver refused, see the log.
 */
int port_start(struct port *port);

/* Takes the port down. The data path must have stopped using it. Frames in flight are freed. */
void port_stop(struct port *port);

/* Stops the port if necessary, and frees everything; for a ring port also the frames in flight, so
 * the data path must not use its peer meanwhile. NULL is allowed. */
void port_destroy(struct port *port);

/* What the HCA sends and receives through; valid until port_destroy. */
struct link_port *port_link(struct port *port);

/*
 * Changes the faults of what is sent from now on, while the data path sends; the seed only before
 * the first fault. Frames that refer to their payload, and trains, are exempt: turn these off
 * first. 0; -ENOMEM: not on all queues.
 */
int port_set_impairment(struct port *port, const struct port_impairment *impairment);

/* Changes the gateways for later resolutions; addresses that are resolved already stay as they
 * are. */
void port_set_gateways(struct port *port, const struct port_gateways *gateways);

/* Are these other addresses than the configured ones, or in another order? */
bool port_moves(const struct port *port, const struct port_addresses *to);
/*
 * Replaces the configured addresses by these, and those in *info by what the port has then. The MAC
 * address and the link-local one stay. No lcore may poll the port. Makes no system call. The caller
 * must call port_moved() afterwards.
 */
void port_move(struct port *port, const struct port_addresses *to, struct port_info *info);
/*
 * Completes a move, while lcores poll again: announces the addresses that *before does not list to
 * neighbours, once, by gratuitous ARP or unsolicited advertisement; where a kernel has them too, it
 * leaves that to the kernel.
 */
void port_moved(struct port *port, const struct port_info *before);

/* Fills in a snapshot of the port. Never fails. */
void port_info(struct port *port, struct port_info *info);

/*
 * Finds the MAC address of the next hop to `ip` (IPv4 as ::ffff:a.b.c.d): of the address itself if
 * it is in the prefix of an address of the port (IPv6 link-local always is), else of the gateway.
 *
 * 0: mac_out is set (for multicast and the port's own addresses, with its own MAC: always);
 * -EAGAIN: being resolved, poll again; -EHOSTUNREACH: no route, or no answer within 2.5 s (6
 * requests).
 */
int port_resolve(struct port *port, const uint8_t ip[16], uint8_t mac_out[6]);
/* Would that start a new resolution? */
bool port_would_ask(struct port *port, const uint8_t ip[16]);

/*
 * The port's source address (index in port_info.address) for sending to `ip`, a unicast or
 * multicast address: that address itself if it is the port's own, else one with `ip` in its prefix,
 * else the first of the family; link-local only as a last resort. -ENETUNREACH: no route.
 */
int port_source(const struct port *port, const uint8_t ip[16]);

/*
 * Adds or removes a listener of the multicast group ip (IPv4 as ::ffff:a.b.c.d). While there is
 * one, frames to the group are received, and routers and switches are informed by IGMPv3 or MLDv2,
 * as by a kernel; and RoCE frames that this port sends to any group are looped back to it. 0;
 * -ENOMEM. port_leave: ip must have been joined. Groups end with the port, without a report.
 */
int port_join(struct port *port, const uint8_t ip[16]);
void port_leave(struct port *port, const uint8_t ip[16]);

/*
 * The control thread's turn, to be called about every millisecond: answers ARP, neighbour discovery
 * and ping for addresses that no kernel serves; repeats requests; reports groups; watches the link;
 * flushes the capture. Bounded: at most a ring of frames per call.
 */
void port_poll_control(struct port *port);

/* Do frames of the control thread wait for the data path to send them? */
bool port_control_waits(const struct port *port);

/*
 * Copies `bytes` of the payload that a frame refers to (PAYLOAD_REF in pipeline/frame_marks.h),
 * from offset `skip` on; `place` is where the frame has the reference. False: the payload is gone.
 * Queue's lcore.
 */
typedef bool port_payload(const uint8_t *place, uint32_t skip, uint8_t *to, uint32_t bytes);

/*
 * Begins to copy the packets of both directions, each packet of a train by itself, into a ring
 * (host-abi/capture_ring.h) in `memory`, which others may write, too; at most `snap` bytes of each
 * (0: all). The copy has the ICRC and the payload even where the frame does not; without payload()
 * it ends in front of the latter. The port may be running. The memory stays the caller's. 0;
 * -EINVAL: too little memory for the port's queues; -EBUSY: there are PORT_CAPTURES_MAX already.
 */
int port_capture_begin(struct port *port, void *memory, uint64_t bytes, uint32_t snap,
		       port_payload *payload);
/* Ends it. The data path may still use the memory and the capture's slot until the end of its
 * current poll: the caller must wait for that before it frees the memory or begins a capture. */
void port_capture_end(struct port *port, const void *memory);

/*
 * Writes captured frames to the file of the setting; part of port_poll_control. 0; or -errno of the
 * failed write, after which the capture is closed (logged).
 */
int port_capture_flush(struct port *port);

/* Value of counter i (enum port_counter_id), summed over the queues; may be slightly stale. */
uint64_t port_counter(const struct port *port, unsigned int i);
/* Name of a counter; static storage. i < PORT_COUNTER_COUNT. */
const char *port_counter_name(unsigned int i);

/*
 * The NUMA node of a port's device, read below `sysfs` ("/sys"); the port need not exist. -1:
 * unknown, as for ports without a device (ring, memif, tap).
 */
int port_node(const struct port_config *config, const char *sysfs);

/* "ring", "memif", ... for a type; NULL if invalid. */
const char *port_type_name(enum port_type type);

#endif
