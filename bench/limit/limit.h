/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIMIT_H
#define LIMIT_H
/*
 * The physical limit: the speed of this machine when it does only what no RoCEv2 data path can
 * avoid. Benchmarks print their results as a share of it, measured in the same run, because
 * machines, and one machine from minute to minute, differ by more than our changes do.
 *
 * The models run on the calling lcore, in a process whose EAL the caller has initialised; they need
 * no hugepages. They allocate their own mbufs and rings and free them. Not reentrant: one model at
 * a time in a process. A rate is per second of CPU time of the lcore, so that a neighbour on the
 * same core does not count; its effect on the caches does.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limit_params {
	/* Length of one repetition, 1 or more. */
	unsigned int repetition_ms;
	/* Number of repetitions, 1..LIMIT_REPETITIONS_MAX; the median is returned. */
	unsigned int repetitions;
	/*
	 * Messages: ICRCs in a separate pass over each burst, instead of packet by packet. A
	 * third faster here: right after the headers were stored in small pieces, the ICRC's wide
	 * loads of them wait. false: comparable with the measurements that the targets come from.
	 */
	bool icrc_by_burst;
};

enum {
	LIMIT_REPETITIONS_MAX = 64,
	LIMIT_MESSAGE_BYTES = 64 << 10, /* of large messages */
};

/* A quarter of a second in all: enough for 2 % on a quiet machine. */
#define LIMIT_PARAMS_DEFAULT ((struct limit_params){.repetition_ms = 50, .repetitions = 5})

/*
 * Payload bytes per second of one core that plays both sides: RDMA writes of 64 KiB in packets of
 * 4096 bytes, from and to the same 64 KiB again and again (all in the cache). Sender: an mbuf,
 * headers from a template, one fused copy + CRC. A ring. Receiver: ICRC check fused with the copy
 * to its place, free. Returns 0 if memory is short, -1 if a packet came out wrong (a fault of
 * ours).
 */
double limit_bulk_bytes_per_s(const struct limit_params *params);

/*
 * Bytes per second of one core that only copies such messages, without CRC or packets, each from
 * and to where the one before ended, in span_bytes of memory at either end: with span_bytes ==
 * message_bytes the same message again and again (two buffers that do not fit into its L2 are
 * slower), with 1 GiB from and to DRAM. All is touched before it is measured. message_bytes: a
 * multiple of 4096, and span_bytes of that. Returns as above.
 */
double limit_copy_bytes_per_s(const struct limit_params *params, uint32_t message_bytes,
			      size_t span_bytes);

/*
 * Messages per second of one core that plays both sides: RDMA writes of 64 bytes, an
 * acknowledgement for each. Requester: WQE, QP context, headers from a template, payload, ICRC. A
 * ring. Responder: ICRC, PSN and memory region checked, payload stored, acknowledgement with ICRC.
 * A ring. Requester: ICRC checked, WQE retired, CQE written. Returns as above.
 */
double limit_messages_per_s(const struct limit_params *params);

/*
 * Median round trip of a cache line between two CPUs in ns (takes a few ms of both).
 * Binds the calling thread to cpu_a for that time. Returns 0 if we may not use either CPU.
 */
double limit_topology_between(int cpu_a, int cpu_b);

/* The same between the CPU of the calling thread and the first other one; 0 if there is none. */
double limit_topology(void);

/* "siblings" (two threads of one core), "near" (one L3) or "far", from such a round trip. */
const char *limit_topology_name(double round_trip_ns);

enum pingpong_transport {
	PINGPONG_UDP,
	PINGPONG_TCP,
};

/*
 * One-way latency in ns (half of the median round trip) of 8 bytes over the kernel's loopback
 * between two threads bound to the two CPUs: what a program without RDMA gets. busy: non-blocking
 * sockets polled in a loop; otherwise blocking ones. round_trips: 1..1000000. Returns 0 if a
 * socket or a CPU could not be had, or if no answer came within a second.
 */
double udp_tcp_pingpong(enum pingpong_transport transport, bool busy, unsigned int round_trips,
			int cpu_a, int cpu_b);

#endif
