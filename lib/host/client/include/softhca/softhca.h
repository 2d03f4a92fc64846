/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_SOFTHCA_H
#define SOFTHCA_SOFTHCA_H
/*
 * libsofthca: the native client library of softhca, an RDMA NIC in software.
 *
 * A program opens a device of the daemon `softhcad` over a Unix socket and from then on works
 * through shared memory: posting and polling make no system call (but one to wake a daemon that
 * sleeps). The objects and their rules are those of RDMA verbs; so are the numbers of opcodes,
 * flags, states, access rights and completion statuses.
 *
 * Conventions
 *  - Functions that return int return 0 (or a count) or -errno; functions that return a pointer
 * return NULL and set errno. Any call that needs the daemon may also fail with ENOTCONN: the daemon
 * has gone, the context is dead.
 *  - Addresses (GIDs) are 16 bytes, an IPv4 address stands as ::ffff:a.b.c.d. Immediate data is in
 * network order.
 *  - Threads: everything may be called from any thread at the same time; an object may be destroyed
 * once no other thread uses it. A process that forks must not use a context on both sides.
 *  - Objects are freed by their own function only, dependants first (else -EBUSY); softhca_close()
 * frees what is left.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTHCA_API __attribute__((visibility("default")))

/* Where the system's daemon listens. One that an ordinary user started listens at
 * $XDG_RUNTIME_DIR/softhca/softhca.sock, or /tmp/softhca-UID/softhca.sock. */
#define SOFTHCA_SOCKET_DEFAULT "/run/softhca/softhca.sock"

struct softhca_context;
struct softhca_pd;
struct softhca_channel;
struct softhca_cq;
struct softhca_srq;
struct softhca_qp;
struct softhca_ah;

/* ---- devices ---- */

enum softhca_port_state { SOFTHCA_PORT_DOWN = 1, SOFTHCA_PORT_ACTIVE = 4 };
struct softhca_port_attr {
	uint32_t state;		      /* enum softhca_port_state */
	uint32_t max_mtu, active_mtu; /* enum softhca_mtu */
	uint32_t speed_mbps;
	uint32_t gid_count, pkey_count;
	uint8_t mac[6];
	uint8_t reserved[2];
};

struct softhca_device_info {
	char name[32]; /* what softhca_open() takes */
	uint64_t guid;
	uint32_t index; /* in the daemon: stays as long as it runs */
	uint32_t reserved;
	struct softhca_port_attr port; /* a moment ago */
};
/*
 * The devices of the daemon at `socket_path` (as softhca_open()), without opening one: fills up to
 * n entries and returns how many there are. -ENOENT, -ECONNREFUSED (no daemon there), -EPROTO
 * (daemon of another version), or what socket calls say.
 */
SOFTHCA_API int softhca_device_list(const char *socket_path, struct softhca_device_info *list,
				    unsigned int n);

/*
 * What the file `name` below /sys/class/infiniband/DEVICE/ would hold now, such as
 * "ports/1/counters/port_rcv_data" or "ports/1/hw_counters/retransmitted_packets": text of up to
 * `bytes` bytes (480 always suffice) that ends with a newline, not with 0. Returns how many;
 * -ENOENT (no such file, or no daemon), -ENODEV, -ECONNREFUSED, -ENOTCONN, -ENOSPC.
 */
SOFTHCA_API int softhca_read_attribute(const char *socket_path, const char *device,
				       const char *name, char *text, unsigned int bytes);

/*
 * Opens device `device` (NULL or "": the first) of the daemon at `socket_path` (NULL: environment
 * SOFTHCA_SOCKET, else SOFTHCA_SOCKET_DEFAULT, or, where that is not there, the user's own). NULL
 * with errno: ENOENT, ECONNREFUSED (no daemon there), ENODEV (no such device), EPROTO (daemon of
 * another version), EUSERS (no room for another client), ENOMEM, or what socket calls set.
 */
SOFTHCA_API struct softhca_context *softhca_open(const char *socket_path, const char *device);

/*
 * The same over a connected socket, of who was given one (softhcad gives itself one): it is the
 * library's from now on, and closed when this fails.
 */
SOFTHCA_API struct softhca_context *softhca_open_socket(int fd, const char *device);

/* Ends the connection and frees everything made in it. Returns 0. No other thread may be in a call
 * on it. */
SOFTHCA_API int softhca_close(struct softhca_context *ctx);

struct softhca_device_attr {
	char name[32];
	uint64_t guid;
	uint32_t max_qp, max_cq, max_mr, max_pd;
	uint32_t max_qp_wr;	      /* work requests of one queue */
	uint32_t max_cqe;	      /* entries of one CQ */
	uint32_t max_srq, max_srq_wr; /* and work requests of one SRQ */
	uint32_t max_mw;	      /* windows and MRs together are no more than max_mr */
	uint32_t max_fast_reg_pages;  /* of one SOFTHCA_WR_REG_MR */
	uint32_t max_sge;	      /* of one work request */
	uint32_t max_inline_bytes;    /* of one work request */
	uint32_t max_rd_atomic;	      /* READs and atomics outstanding, each direction */
	uint32_t gid_count;
	uint64_t max_mr_bytes;
	uint32_t max_mcast_groups; /* multicast groups that QPs are attached to */
	uint32_t max_mcast_qps;	   /* QPs of one group */
	uint32_t max_mcast_attach; /* of all of them together */
};
/* Asks nobody: 0. */
SOFTHCA_API int softhca_query_device(struct softhca_context *ctx, struct softhca_device_attr *attr);

SOFTHCA_API int softhca_query_port(struct softhca_context *ctx, struct softhca_port_attr *attr);
/* Entry `index` of the GID table. -ENOENT past its end. */
SOFTHCA_API int softhca_query_gid(struct softhca_context *ctx, uint32_t index, uint8_t gid[16]);

/* ---- memory ---- */

/* NULL with errno: ENOSPC. */
SOFTHCA_API struct softhca_pd *softhca_alloc_pd(struct softhca_context *ctx);
/* 0, -EBUSY. */
SOFTHCA_API int softhca_free_pd(struct softhca_pd *pd);

/*
 * Memory that the daemon can reach, zeroed, aligned to 4 KiB, rounded up to pages: the cheapest to
 * register. Its pages stay shared with a child of fork(). NULL with errno: ENOMEM, EINVAL (0 bytes
 * or more than the device takes), ENOSPC (too many).
 */
SOFTHCA_API void *softhca_alloc(struct softhca_context *ctx, size_t bytes);
/* addr as softhca_alloc() gave it; NULL is allowed. 0, -EINVAL (not such memory), -EBUSY (an MR
 * lies in it). */
SOFTHCA_API int softhca_free(struct softhca_context *ctx, void *addr);

enum softhca_access {
	SOFTHCA_ACCESS_LOCAL_WRITE = 1,
	SOFTHCA_ACCESS_REMOTE_WRITE = 2, /* needs LOCAL_WRITE */
	SOFTHCA_ACCESS_REMOTE_READ = 4,
	SOFTHCA_ACCESS_REMOTE_ATOMIC = 8, /* needs LOCAL_WRITE */
	SOFTHCA_ACCESS_MW_BIND = 16,	  /* windows and fast-registered regions may lie over it */
	SOFTHCA_ACCESS_ZERO_BASED = 32,	  /* its first byte has the address 0 */
};

/* A memory region: read the fields, write none. */
struct softhca_mr {
	void *addr;
	size_t length;
	uint32_t lkey, rkey;
	struct softhca_pd *pd;
};
/*
 * Registers [addr, addr + length), any memory of the process; no alignment needed. `access`: enum
 * softhca_access. Memory of softhca_alloc() is registered fastest. Other private memory (heap,
 * .data, stacks, private file mappings) is made shareable in place, in whole pages, by moving it
 * into a file in memory, where it is kept for the next time. This copies it, and stops other
 * threads for the moment: their poll(), nanosleep() and the like may return EINTR, stores are never
 * lost. A child of fork() gets its own copy. Shared memory is used as it is: memfd, shm_open(),
 * tmpfs, hugetlbfs, MAP_ANONYMOUS; shmget() where the daemon may attach it (EACCES, EPERM if not).
 * A length of 0 is allowed, wherever addr points: all but requests of no bytes are refused then.
 * NULL with errno: EFAULT (not mapped; not writable, with LOCAL_WRITE), EOPNOTSUPP (a shared
 * mapping of a file on a disk, or of a device, or one whose file cannot be found), EINVAL, ENOSPC
 * (too many MRs, or mappings of the daemon's, or pages of MRs that are scattered), ENOMEM, EAGAIN
 * (a thread of the process does not stop), EFBIG (RLIMIT_FSIZE is set).
 */
SOFTHCA_API struct softhca_mr *softhca_reg_mr(struct softhca_pd *pd, void *addr, size_t length,
					      unsigned int access);
/* The same, but `iova` is the address that names its first byte in requests, here and of peers
 * (0 with ZERO_BASED). */
SOFTHCA_API struct softhca_mr *softhca_reg_mr_iova(struct softhca_pd *pd, void *addr, size_t length,
						   uint64_t iova, unsigned int access);
/* 0, -EBUSY (a window is bound to it, or a fast-registered region lies over it). When it returns,
 * nothing accesses the memory through these keys any more. */
SOFTHCA_API int softhca_dereg_mr(struct softhca_mr *mr);

enum softhca_rereg_flags {
	SOFTHCA_REREG_MR_CHANGE_TRANSLATION = 1,
	SOFTHCA_REREG_MR_CHANGE_PD = 2,
	SOFTHCA_REREG_MR_CHANGE_ACCESS = 4,
};
/*
 * Changes what `flags` name of a region: its address range, its protection domain, its access
 * rights. Its keys stay. There is a moment in which they name nothing: no request may use them
 * meanwhile. 0, or, with nothing changed: -EBUSY (as softhca_dereg_mr()), -EINVAL (also
 * for one of softhca_alloc_mr() or of no bytes), or as softhca_reg_mr().
 */
SOFTHCA_API int softhca_rereg_mr(struct softhca_mr *mr, unsigned int flags, struct softhca_pd *pd,
				 void *addr, size_t length, unsigned int access);

/*
 * A region without memory, invalid, for SOFTHCA_WR_REG_MR with at most so many pages; addr and
 * length stay NULL and 0. softhca_dereg_mr() takes it back. NULL with errno: EINVAL, ENOSPC.
 */
SOFTHCA_API struct softhca_mr *softhca_alloc_mr(struct softhca_pd *pd, uint32_t pages);

/*
 * A region without memory that has every address: what is sent from it is zeroes, what is received
 * into it is gone. Local access alone. softhca_dereg_mr() takes it back. NULL with errno: ENOSPC.
 */
SOFTHCA_API struct softhca_mr *softhca_alloc_null_mr(struct softhca_pd *pd);

enum softhca_mw_type {
	SOFTHCA_MW_TYPE_1 = 1, /* softhca_bind_mw(); any QP of the PD may reach it */
	SOFTHCA_MW_TYPE_2 = 2, /* SOFTHCA_WR_BIND_MW; the QP alone that bound it (2B) */
};

/* A memory window. */
struct softhca_mw {
	uint32_t rkey; /* type 1: as of the last softhca_bind_mw(); type 2: as allocated, its tag
			  is for each SOFTHCA_WR_BIND_MW to choose */
	uint32_t type;
	struct softhca_pd *pd;
};
/* Bound to nothing. NULL with errno: EINVAL (type), ENOSPC. */
SOFTHCA_API struct softhca_mw *softhca_alloc_mw(struct softhca_pd *pd, enum softhca_mw_type type);
/* Bound or not. 0. When it returns, nothing accesses memory through it any more. */
SOFTHCA_API int softhca_dealloc_mw(struct softhca_mw *mw);

/* The key with the next tag: the part, 8 bits, that the owner of a window or of a region of
 * softhca_alloc_mr() chooses, bits 7:0 of it. The same as ibv_inc_rkey(). */
static inline uint32_t softhca_inc_rkey(uint32_t rkey)
{
	return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
}

/* ---- completion queues and events ---- */

/* A channel collects completion events of the CQs made with it. NULL with errno: EMFILE, ENOMEM,
 * EAGAIN. */
SOFTHCA_API struct softhca_channel *softhca_create_channel(struct softhca_context *ctx);
/* 0, -EBUSY while CQs use it. */
SOFTHCA_API int softhca_destroy_channel(struct softhca_channel *channel);
/* Readable while events wait: for poll() and O_NONBLOCK. Stays the library's. */
SOFTHCA_API int softhca_channel_fd(const struct softhca_channel *channel);

/*
 * A CQ of at least `entries` entries (rounded up to a power of two). `user` comes back with its
 * events. `channel` may be NULL. NULL with errno: EINVAL (0 or more than max_cqe), ENOSPC, ENOMEM.
 * A CQ must have room for every work request that may complete into it: an overflow loses
 * completions, is reported as SOFTHCA_EVENT_CQ_ERR, and the CQ takes none from then on.
 */
SOFTHCA_API struct softhca_cq *softhca_create_cq(struct softhca_context *ctx, uint32_t entries,
						 void *user, struct softhca_channel *channel);
/* 0, -EBUSY while QPs use it. Waits until all of its events are acknowledged. */
SOFTHCA_API int softhca_destroy_cq(struct softhca_cq *cq);
SOFTHCA_API void *softhca_cq_user(const struct softhca_cq *cq);
SOFTHCA_API uint32_t softhca_cq_number(const struct softhca_cq *cq);
SOFTHCA_API uint32_t softhca_cq_entries(const struct softhca_cq *cq);
/*
 * Changes the number of entries, rounded up as at creation. Completions go on meanwhile, those not
 * polled stay, in order; other threads may poll and arm. 0; -EINVAL: entries; -EBUSY: what was not
 * polled, or what signaled sends that are underway will bring, does not fit; -ENOMEM, -ENOTCONN;
 * then the CQ is as it was.
 */
SOFTHCA_API int softhca_resize_cq(struct softhca_cq *cq, uint32_t entries);

enum softhca_wc_status {
	SOFTHCA_WC_SUCCESS = 0,
	SOFTHCA_WC_LOC_LEN_ERR,
	SOFTHCA_WC_LOC_QP_OP_ERR,
	SOFTHCA_WC_LOC_EEC_OP_ERR,
	SOFTHCA_WC_LOC_PROT_ERR,
	SOFTHCA_WC_WR_FLUSH_ERR,
	SOFTHCA_WC_MW_BIND_ERR,
	SOFTHCA_WC_BAD_RESP_ERR,
	SOFTHCA_WC_LOC_ACCESS_ERR,
	SOFTHCA_WC_REM_INV_REQ_ERR,
	SOFTHCA_WC_REM_ACCESS_ERR,
	SOFTHCA_WC_REM_OP_ERR,
	SOFTHCA_WC_RETRY_EXC_ERR,
	SOFTHCA_WC_RNR_RETRY_EXC_ERR,
	SOFTHCA_WC_LOC_RDD_VIOL_ERR,
	SOFTHCA_WC_REM_INV_RD_REQ_ERR,
	SOFTHCA_WC_REM_ABORT_ERR,
	SOFTHCA_WC_INV_EECN_ERR,
	SOFTHCA_WC_INV_EEC_STATE_ERR,
	SOFTHCA_WC_FATAL_ERR,
	SOFTHCA_WC_RESP_TIMEOUT_ERR,
	SOFTHCA_WC_GENERAL_ERR,
};

enum softhca_wc_opcode {
	SOFTHCA_WC_SEND = 0,
	SOFTHCA_WC_RDMA_WRITE = 1,
	SOFTHCA_WC_RDMA_READ = 2,
	SOFTHCA_WC_COMP_SWAP = 3,
	SOFTHCA_WC_FETCH_ADD = 4,
	SOFTHCA_WC_BIND_MW = 5,
	SOFTHCA_WC_LOCAL_INV = 6,
	SOFTHCA_WC_REG_MR = 15,
	SOFTHCA_WC_RECV = 128, /* test with &: a receive */
	SOFTHCA_WC_RECV_RDMA_WITH_IMM = 129,
};

enum softhca_wc_flags {
	SOFTHCA_WC_GRH = 1, /* UD: the first 40 bytes of the buffer hold the IP header; they count
			       in byte_len */
	SOFTHCA_WC_WITH_IMM = 2,
	SOFTHCA_WC_WITH_INV = 8, /* invalidated_rkey is valid */
};

/* A work completion. If status is not SUCCESS only wr_id, status, vendor_err and qp_num mean
 * anything. */
struct softhca_wc {
	uint64_t wr_id;
	uint32_t status; /* enum softhca_wc_status */
	uint32_t opcode; /* enum softhca_wc_opcode */
	uint32_t vendor_err;
	uint32_t byte_len; /* receives, READs and atomics */
	union {
		uint32_t imm_data; /* network order */
		uint32_t invalidated_rkey;
	};
	uint32_t qp_num;
	uint32_t src_qp; /* UD receives */
	uint32_t wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl; /* with SOFTHCA_WC_GRH: enum softhca_wc_sl; else 0 */
	uint8_t dlid_path_bits;
	uint8_t reserved[2];
};

/* What stands in the first 40 bytes of a datagram's buffer. */
enum softhca_wc_sl {
	SOFTHCA_WC_SL_IPV6 = 9,
	SOFTHCA_WC_SL_IPV4 = 10, /* in the last 20 of them */
};

/*
 * Takes up to n completions, oldest first. Never blocks. Returns how many; -EIO: none waits and the
 * daemon has gone, none will come (noticed after some ten thousand empty polls, or at once if a
 * call noticed before). What was posted to queue pairs and not done by then completes first, as
 * WC_WR_FLUSH_ERR, unsignaled requests, too.
 */
SOFTHCA_API int softhca_poll_cq(struct softhca_cq *cq, int n, struct softhca_wc *wc);

/*
 * Asks for one event at the next completion (with solicited_only: at the next solicited or failed
 * one) that is written after this call. Calls before that event ask for the same one: if one of
 * them asked for any completion, any draws it. Poll once more after it before sleeping. 0, -EINVAL:
 * the CQ has no channel.
 */
SOFTHCA_API int softhca_req_notify_cq(struct softhca_cq *cq, int solicited_only);

/*
 * Waits for a completion event of the channel; *cq and *user (either may be NULL) say whose. Each
 * must be acknowledged. 0; -EAGAIN: the descriptor is O_NONBLOCK and no event waits; -EINTR; -EIO:
 * the daemon has gone.
 */
SOFTHCA_API int softhca_get_cq_event(struct softhca_channel *channel, struct softhca_cq **cq,
				     void **user);
SOFTHCA_API void softhca_ack_cq_events(struct softhca_cq *cq, unsigned int events);

enum softhca_event_type {
	SOFTHCA_EVENT_CQ_ERR = 0,	 /* cq: overflowed */
	SOFTHCA_EVENT_QP_FATAL = 1,	 /* qp */
	SOFTHCA_EVENT_QP_REQ_ERR = 2,	 /* qp: invalid request received */
	SOFTHCA_EVENT_QP_ACCESS_ERR = 3, /* qp: access violation by the peer */
	SOFTHCA_EVENT_COMM_EST = 4,	 /* qp: first packet received in RTR */
	SOFTHCA_EVENT_SQ_DRAINED = 5,	 /* qp */
	SOFTHCA_EVENT_DEVICE_FATAL = 8,	 /* the daemon has gone or gave up; comes once, then -EIO */
	SOFTHCA_EVENT_PORT_ACTIVE = 9,
	SOFTHCA_EVENT_PORT_ERR = 10,
	SOFTHCA_EVENT_SRQ_ERR = 14,	/* srq: gives nothing any more */
	SOFTHCA_EVENT_SRQ_LIMIT = 15,	/* srq: fewer requests than its limit are left */
	SOFTHCA_EVENT_QP_LAST_WQE = 16, /* qp: in ERR, took its last request from its SRQ */
};
struct softhca_event {
	uint32_t type;		 /* enum softhca_event_type */
	uint32_t number;	 /* QPN, CQN, SRQN or port, as it was at the time */
	struct softhca_cq *cq;	 /* of CQ events, NULL otherwise or when destroyed meanwhile */
	struct softhca_qp *qp;	 /* of QP events, the same */
	struct softhca_srq *srq; /* of SRQ events, the same */
};
/* Readable while asynchronous events wait; stays the library's. The last one is DEVICE_FATAL, when
 * the daemon has gone. -errno if it cannot be made. */
SOFTHCA_API int softhca_async_fd(struct softhca_context *ctx);
/* Waits for one. 0; -EAGAIN: descriptor is O_NONBLOCK and none waits; -EINTR; -EIO. */
SOFTHCA_API int softhca_get_async_event(struct softhca_context *ctx, struct softhca_event *event);
/*
 * Asynchronous events need not be acknowledged, unless this is called, best before anything is
 * made: from then on none is given about an object that has been destroyed meanwhile, and the
 * destruction of a CQ, QP or SRQ waits until each that was given about it is acknowledged.
 */
SOFTHCA_API void softhca_acknowledge_async_events(struct softhca_context *ctx);
/* One that was given. Only its cq, qp or srq is looked at; of events without them it does nothing.
 */
SOFTHCA_API void softhca_ack_async_event(const struct softhca_event *event);

/* ---- shared receive queues ---- */

struct softhca_srq_init_attr {
	void *user;
	uint32_t max_wr, max_sge; /* what is given, no less and no more */
};
/*
 * A queue of receive requests for many QPs of any service and of any PD: each takes one when a
 * message begins. The local keys in the requests are of `pd`. Requests complete into the receive CQ
 * of the QP that took them. NULL with errno: EINVAL (max_wr is 0; beyond the device's limits),
 * ENOSPC, ENOMEM.
 *
 * A QP that is destroyed or reset in the middle of a message gives its request back, uncompleted:
 * it counts against max_wr no more.
 */
SOFTHCA_API struct softhca_srq *softhca_create_srq(struct softhca_pd *pd,
						   struct softhca_srq_init_attr *attr);
/* 0, -EBUSY while QPs use it. */
SOFTHCA_API int softhca_destroy_srq(struct softhca_srq *srq);
SOFTHCA_API uint32_t softhca_srq_number(const struct softhca_srq *srq);
SOFTHCA_API void *softhca_srq_user(const struct softhca_srq *srq);

/*
 * Asks for one SOFTHCA_EVENT_SRQ_LIMIT when fewer than `limit` requests are left, at once if that
 * is so already; 0: for none. 0, -EINVAL (more than max_wr).
 */
SOFTHCA_API int softhca_arm_srq(struct softhca_srq *srq, uint32_t limit);

struct softhca_srq_attr {
	uint32_t max_wr, max_sge;
	uint32_t limit;	    /* as armed; 0 once the event was raised */
	uint32_t available; /* requests posted that no QP has taken */
	uint32_t error;	    /* 1: see SOFTHCA_EVENT_SRQ_ERR */
};
/* 0; *attr is filled, as it was a moment ago. -errno: nothing is filled. */
SOFTHCA_API int softhca_query_srq(struct softhca_srq *srq, struct softhca_srq_attr *attr);

/* ---- queue pairs ---- */

enum softhca_qp_type { SOFTHCA_QP_RC, SOFTHCA_QP_UC, SOFTHCA_QP_UD };
/* QP 1, a UD QP: the daemon's own, EPERM for everybody else. None that programs could meet. */
#define SOFTHCA_QP_GSI ((enum softhca_qp_type)3)

struct softhca_qp_cap {
	uint32_t max_send_wr, max_recv_wr;
	uint32_t max_send_sge, max_recv_sge;
	uint32_t max_inline_data; /* bytes */
};

struct softhca_qp_init_attr {
	void *user;
	struct softhca_cq *send_cq, *recv_cq; /* may be the same */
	struct softhca_qp_cap cap;	      /* what is given, no less and no more */
	enum softhca_qp_type type;
	int sq_sig_all;		 /* every send request completes with a CQE */
	struct softhca_srq *srq; /* receives come from there, cap.max_recv_* is 0; NULL: its own */
};
/* NULL with errno: EINVAL (beyond the device's limits), ENOSPC, ENOMEM; EPERM, EBUSY (QP 1). The QP
 * is in RST. */
SOFTHCA_API struct softhca_qp *softhca_create_qp(struct softhca_pd *pd,
						 struct softhca_qp_init_attr *attr);
/* 0; -EBUSY: it is attached to a multicast group. Completions not polled yet are discarded. */
SOFTHCA_API int softhca_destroy_qp(struct softhca_qp *qp);
SOFTHCA_API uint32_t softhca_qp_number(const struct softhca_qp *qp);
SOFTHCA_API void *softhca_qp_user(const struct softhca_qp *qp);

enum softhca_qp_state {
	SOFTHCA_QPS_RESET,
	SOFTHCA_QPS_INIT,
	SOFTHCA_QPS_RTR,
	SOFTHCA_QPS_RTS,
	SOFTHCA_QPS_SQE,
	SOFTHCA_QPS_SQD,
	SOFTHCA_QPS_ERR,
};
enum softhca_mtu {
	SOFTHCA_MTU_256 = 1,
	SOFTHCA_MTU_512,
	SOFTHCA_MTU_1024,
	SOFTHCA_MTU_2048,
	SOFTHCA_MTU_4096,
};
/* The state as the library knows it: what it was moved to, or ERR once an error completion was
 * polled. Asks nobody. */
SOFTHCA_API enum softhca_qp_state softhca_qp_current_state(const struct softhca_qp *qp);

/* Which attributes a modification carries (numbers as IBV_QP_*). */
enum softhca_qp_attr_mask {
	SOFTHCA_QP_STATE = 1 << 0,
	SOFTHCA_QP_CUR_STATE = 1 << 1,
	SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2, /* RTS to SQD: an event when drained; no value */
	SOFTHCA_QP_ACCESS_FLAGS = 1 << 3,
	SOFTHCA_QP_PKEY_INDEX = 1 << 4,
	SOFTHCA_QP_PORT = 1 << 5,
	SOFTHCA_QP_QKEY = 1 << 6,
	SOFTHCA_QP_AV = 1 << 7,
	SOFTHCA_QP_PATH_MTU = 1 << 8,
	SOFTHCA_QP_TIMEOUT = 1 << 9,
	SOFTHCA_QP_RETRY_CNT = 1 << 10,
	SOFTHCA_QP_RNR_RETRY = 1 << 11,
	SOFTHCA_QP_RQ_PSN = 1 << 12,
	SOFTHCA_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	SOFTHCA_QP_MIN_RNR_TIMER = 1 << 15,
	SOFTHCA_QP_SQ_PSN = 1 << 16,
	SOFTHCA_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	SOFTHCA_QP_DEST_QPN = 1 << 20,
};

/* Where to: a connection's or a datagram's address. */
struct softhca_ah_attr {
	uint8_t dgid[16];
	uint8_t gid_index; /* ours */
	uint8_t traffic_class;
	uint8_t hop_limit; /* 0: 64, to a multicast group 1 */
	uint8_t reserved;
	uint32_t flow_label; /* 20 bits */
};

struct softhca_qp_attr {
	uint32_t state, cur_state; /* enum softhca_qp_state */
	uint32_t access;	   /* enum softhca_access: what remote requests may do */
	uint32_t qkey;
	uint32_t dest_qpn;
	uint32_t rq_psn, sq_psn; /* 24 bits */
	struct softhca_ah_attr av;
	uint8_t path_mtu;      /* enum softhca_mtu */
	uint8_t timeout;       /* 4.096 µs × 2^timeout, 0: for ever */
	uint8_t retry_cnt;     /* 0..7 */
	uint8_t rnr_retry;     /* 0..6, 7: for ever */
	uint8_t min_rnr_timer; /* code, 0..31 */
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t pkey_index; /* 0 */
	uint8_t port;	    /* 1 */
	uint8_t reserved[3];
};
/*
 * Moves the QP to another state. `mask` (enum softhca_qp_attr_mask) must hold what the transition
 * requires and nothing that it does not allow. 0; -EINVAL; -EHOSTUNREACH: nobody answers at the
 * address (to RTR; may take seconds); -EPERM: a controlled Q_Key, one with the top bit, is for
 * root.
 */
SOFTHCA_API int softhca_modify_qp(struct softhca_qp *qp, const struct softhca_qp_attr *attr,
				  uint32_t mask);
/* All attributes as the daemon has them now; `mask` of the answer is implied by the service. 0. */
SOFTHCA_API int softhca_query_qp(struct softhca_qp *qp, struct softhca_qp_attr *attr);

/* What two programs have to tell each other to connect. */
struct softhca_endpoint {
	uint32_t qpn;
	uint32_t psn; /* first PSN that the sender of this structure sends */
	uint8_t gid[16];
};
/* Fills *local for the peer: number, a random PSN, GID `gid_index`. 0, -ENOENT. */
SOFTHCA_API int softhca_local_endpoint(struct softhca_qp *qp, uint32_t gid_index,
				       struct softhca_endpoint *local);

/* Choices of a connection; softhca_connect_defaults() fills it. */
struct softhca_connect_attr {
	uint32_t gid_index;
	uint32_t access;  /* default: all remote rights */
	uint8_t path_mtu; /* default 0: the port's */
	uint8_t timeout, retry_cnt, rnr_retry,
		min_rnr_timer;			   /* defaults 14 (67 ms), 7, 7, 12 (640 µs) */
	uint8_t max_rd_atomic, max_dest_rd_atomic; /* default 16 */
	uint8_t traffic_class, hop_limit;
	uint8_t reserved[3];
	uint32_t flow_label;
	uint32_t qkey; /* UD; default 0x11111111 */
};
SOFTHCA_API void softhca_connect_defaults(struct softhca_context *ctx,
					  struct softhca_connect_attr *attr);
/*
 * RST → INIT, with the rights (or Q_Key) of `attr` (NULL: defaults): from now on receives may be
 * posted. 0 or -errno.
 */
SOFTHCA_API int softhca_init_qp(struct softhca_qp *qp, const struct softhca_connect_attr *attr);
/*
 * (RST →) INIT → RTR → RTS: to the peer described by *remote, with our PSN as in *local. `attr`
 * NULL: defaults. UD: remote may be NULL. Begins in RST or, when receives were to be posted first,
 * in INIT. 0, or as softhca_modify_qp().
 */
SOFTHCA_API int softhca_connect_qp(struct softhca_qp *qp, const struct softhca_endpoint *local,
				   const struct softhca_endpoint *remote,
				   const struct softhca_connect_attr *attr);

/* An address for UD sends; asks the daemon for the next hop. NULL with errno: EHOSTUNREACH, EINVAL,
 * ENOMEM. */
SOFTHCA_API struct softhca_ah *softhca_create_ah(struct softhca_pd *pd,
						 const struct softhca_ah_attr *attr);
/* The same for who knows the next hop's Ethernet address and a GID index that there is: asks
 * nobody. NULL with errno: ENOMEM. */
SOFTHCA_API struct softhca_ah *softhca_create_ah_by(struct softhca_pd *pd,
						    const struct softhca_ah_attr *attr,
						    const uint8_t mac[6]);
SOFTHCA_API int softhca_destroy_ah(struct softhca_ah *ah);
/* The next hop's Ethernet address on the way there, as an address handle would have it. 0,
 * -EHOSTUNREACH, -EINVAL. */
SOFTHCA_API int softhca_resolve(struct softhca_context *ctx, const struct softhca_ah_attr *attr,
				uint8_t mac[6]);

/*
 * Attaches a UD QP, in any state, to the multicast group mgid (an IPv6 address in ff00::/8, or
 * v4-mapped in 224.0.0.0/4): datagrams to it come to the QP, too, if their Q_Key is its own. What
 * is sent to a group comes back to those QPs of this device that are attached, the sender's own,
 * too. To send, a QP needs an address handle of the group and remote_qpn 0xffffff, and to be
 * attached to nothing. Attaching once more changes nothing. 0; -EINVAL (not a group's address, not
 * a UD QP); -ENOMEM (max_mcast_*).
 */
SOFTHCA_API int softhca_attach_mcast(struct softhca_qp *qp, const uint8_t mgid[16]);
/* 0, -EINVAL (it is not attached). */
SOFTHCA_API int softhca_detach_mcast(struct softhca_qp *qp, const uint8_t mgid[16]);

/* ---- work requests ---- */

struct softhca_sge {
	uint64_t addr;
	uint32_t length; /* bytes; 0: nothing, skipped */
	uint32_t lkey;
};

enum softhca_wr_opcode {
	SOFTHCA_WR_RDMA_WRITE = 0,
	SOFTHCA_WR_RDMA_WRITE_WITH_IMM = 1,
	SOFTHCA_WR_SEND = 2,
	SOFTHCA_WR_SEND_WITH_IMM = 3,
	SOFTHCA_WR_RDMA_READ = 4,
	SOFTHCA_WR_ATOMIC_CMP_AND_SWP = 5,
	SOFTHCA_WR_ATOMIC_FETCH_AND_ADD = 6,
	/* Those that change a key; RC and UC. Executed in their turn, behind the local reads of
	 * what was posted before; SOFTHCA_SEND_FENCE: behind the answers to its READs and atomics,
	 * too. Refused: SOFTHCA_WC_MW_BIND_ERR. Flushed: executed or not; the key is to be given
	 * up (softhca_dealloc_mw(), softhca_dereg_mr()). */
	SOFTHCA_WR_LOCAL_INV = 7, /* invalidate_rkey: a window of type 2, a region of REG_MR */
	SOFTHCA_WR_BIND_MW = 8,
	SOFTHCA_WR_SEND_WITH_INV = 9,
	SOFTHCA_WR_REG_MR = 12,
};

enum softhca_send_flags {
	SOFTHCA_SEND_FENCE = 1,	   /* wait for earlier READs and atomics */
	SOFTHCA_SEND_SIGNALED = 2, /* complete with a CQE */
	SOFTHCA_SEND_SOLICITED = 4,
	SOFTHCA_SEND_INLINE =
		8, /* data is copied now, lkeys are not looked at; up to max_inline_data bytes */
};

/* What a window is to be bound to: part of a region with SOFTHCA_ACCESS_MW_BIND (and LOCAL_WRITE
 * for the rights to write). */
struct softhca_mw_bind_info {
	struct softhca_mr *mr;
	uint64_t addr;
	uint64_t length; /* 0, type 1 only: to nothing */
	uint32_t access; /* enum softhca_access: remote rights; type 2: ZERO_BASED, too */
};

struct softhca_send_wr {
	uint64_t wr_id;
	struct softhca_send_wr *next;
	struct softhca_sge *sg_list;
	int num_sge;
	uint32_t opcode;     /* enum softhca_wr_opcode */
	uint32_t send_flags; /* enum softhca_send_flags */
	union {
		uint32_t imm_data; /* network order */
		uint32_t invalidate_rkey;
	};
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct {
			struct softhca_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
		struct {
			struct softhca_mw *mw;
			uint32_t rkey; /* bits 7:0: the tag that the window shall have */
			struct softhca_mw_bind_info bind_info;
		} bind_mw;
		struct {
			uint32_t key; /* of softhca_alloc_mr(), with the tag that it shall have */
			uint32_t access;		 /* enum softhca_access */
			const struct softhca_mr *memory; /* with SOFTHCA_ACCESS_MW_BIND: whose the
							    pages are */
			uint64_t iova;	 /* its first byte, iova % page size into the first page */
			uint64_t length; /* needs exactly that many pages */
			const uint64_t *page; /* addresses in `memory`, multiples of the page size,
						 in any order */
			uint16_t pages;
			uint8_t log_page; /* 12..30 */
		} reg_mr;
	} wr;
};

struct softhca_recv_wr {
	uint64_t wr_id;
	struct softhca_recv_wr *next;
	struct softhca_sge *sg_list;
	int num_sge;
};

/*
 * Posts a list of send requests with one doorbell. 0, or: -EINVAL (opcode, entries or inline length
 * that the QP does not take; QP not in RTS, SQD, SQE or ERR), -ENOMEM (queue full: poll the CQ;
 * unsignaled requests leave the queue when a later one completes), -EAGAIN (the daemon takes no
 * doorbells), -EIO (the daemon has gone). On failure *bad_wr (may be NULL) is the first request
 * that was not posted; those before it were.
 */
SOFTHCA_API int softhca_post_send(struct softhca_qp *qp, struct softhca_send_wr *wr,
				  struct softhca_send_wr **bad_wr);

/*
 * The same, request by request: start, add any number, end or abort. In between the send queue is
 * this thread's alone: it posts nothing else to it, others wait. *wr and what it points at are read
 * by softhca_post_add() and not kept; wr->next is not looked at.
 *
 * softhca_post_add(): 0, or why the batch will fail. softhca_post_end(): 0, all are posted with one
 * doorbell, or, as softhca_post_send(), the first failure: none is. softhca_post_abort(): none is.
 */
SOFTHCA_API void softhca_post_start(struct softhca_qp *qp);
SOFTHCA_API int softhca_post_add(struct softhca_qp *qp, const struct softhca_send_wr *wr);
SOFTHCA_API int softhca_post_end(struct softhca_qp *qp);
SOFTHCA_API void softhca_post_abort(struct softhca_qp *qp);

struct softhca_mw_bind {
	uint64_t wr_id;
	uint32_t send_flags;
	struct softhca_mw_bind_info bind_info;
};
/* Posts the bind of a window of type 1; its rkey is from now on what it will be. 0, -EINVAL (type
 * 2), or as softhca_post_send(). */
SOFTHCA_API int softhca_bind_mw(struct softhca_qp *qp, struct softhca_mw *mw,
				const struct softhca_mw_bind *bind);

/* Posts receive requests. 0, -EINVAL (too many entries; a QP with an SRQ), -ENOMEM (queue full),
 * -EIO; *bad_wr as above. */
SOFTHCA_API int softhca_post_recv(struct softhca_qp *qp, struct softhca_recv_wr *wr,
				  struct softhca_recv_wr **bad_wr);

/* The same into an SRQ, whatever the state of its QPs. -ENOMEM: max_wr are posted and not polled.
 */
SOFTHCA_API int softhca_post_srq_recv(struct softhca_srq *srq, struct softhca_recv_wr *wr,
				      struct softhca_recv_wr **bad_wr);

/* ---- words ---- */

/* English for a number; never NULL; static storage. */
SOFTHCA_API const char *softhca_wc_status_str(uint32_t status);
SOFTHCA_API const char *softhca_event_type_str(uint32_t type);
SOFTHCA_API const char *softhca_qp_state_str(uint32_t state);

#ifdef __cplusplus
}
#endif
#endif
