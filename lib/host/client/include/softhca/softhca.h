/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_SOFTHCA_H
#define SOFTHCA_SOFTHCA_H
/*
 * libsofthca: the native client library of softhca, an RDMA NIC in software.
 *
 * A program opens a device of the daemon `softhcad` over a Unix socket and works through shared
 * memory from then on: posting and polling make no system call, except to wake a sleeping daemon.
 * Objects and their rules are those of RDMA verbs; so are the numbers of opcodes, flags, states,
 * access rights and completion statuses.
 *
 * Conventions
 *  - Functions that return int return 0 (or a count) or -errno; functions that return a pointer
 *    return NULL and set errno. Any call that needs the daemon may also fail with ENOTCONN: the
 *    daemon has died or closed the connection, and the context is dead.
 *  - Addresses (GIDs) are 16 bytes; an IPv4 address is written ::ffff:a.b.c.d. Immediate data is
 *    in network byte order.
 *  - Threads: any function may be called from any thread at any time; an object may be destroyed
 *    once no other thread uses it. After fork() only one of parent and child may use a context.
 *  - Objects are freed by their own function only, dependants first (else -EBUSY);
 *    softhca_close() frees what is left.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTHCA_API __attribute__((visibility("default")))

/* Socket of the system's daemon. One started by an ordinary user listens at
 * $XDG_RUNTIME_DIR/softhca/softhca.sock, or /tmp/softhca-UID/softhca.sock; anybody else who listens
 * there is refused (-EPERM). At any other path a daemon of root, of this user or of the folder's
 * owner is accepted. */
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
	uint32_t index; /* constant while the daemon runs */
	uint32_t reserved;
	struct softhca_port_attr port; /* a snapshot */
};
/*
 * Lists the devices of the daemon at `socket_path` (see softhca_open()) without opening one: fills
 * up to n entries and returns the number of devices. -ENOENT, -ECONNREFUSED (no daemon listens),
 * -EPROTO (daemon of another version), or an error of the socket calls.
 */
SOFTHCA_API int softhca_device_list(const char *socket_path, struct softhca_device_info *list,
				    unsigned int n);

/*
 * Reads what the file `name` below /sys/class/infiniband/DEVICE/ would hold, such as
 * "ports/1/counters/port_rcv_data" or "ports/1/hw_counters/retransmitted_packets", into `text` of
 * `bytes` bytes (480 always suffice). The text ends with a newline, not with a NUL. Returns its
 * length; -ENOENT (no such file, or no daemon), -ENODEV, -ECONNREFUSED, -ENOTCONN, -ENOSPC.
 */
SOFTHCA_API int softhca_read_attribute(const char *socket_path, const char *device,
				       const char *name, char *text, unsigned int bytes);

/*
 * Opens device `device` (NULL or "": the first) of the daemon at `socket_path`. NULL means the
 * environment's SOFTHCA_SOCKET, else SOFTHCA_SOCKET_DEFAULT if it exists, else the user's own. NULL
 * with errno: ENOENT, ECONNREFUSED (no daemon listens), ENODEV (no such device), EPROTO (daemon of
 * another version), EUSERS (too many clients), ENOMEM, or an error of the socket calls.
 */
SOFTHCA_API struct softhca_context *softhca_open(const char *socket_path, const char *device);

/*
 * The same over a socket that is already connected (softhcad connects to itself this way). The
 * library owns the socket from then on and closes it on failure.
 */
SOFTHCA_API struct softhca_context *softhca_open_socket(int fd, const char *device);

/* Closes the connection and frees everything created in it. Returns 0. No other thread may be in a
 * call on it. */
SOFTHCA_API int softhca_close(struct softhca_context *ctx);

struct softhca_device_attr {
	char name[32];
	uint64_t guid;
	uint32_t max_qp, max_cq, max_mr, max_pd;
	uint32_t max_qp_wr;	      /* work requests of one queue */
	uint32_t max_cqe;	      /* entries of one CQ */
	uint32_t max_srq, max_srq_wr; /* and work requests of one SRQ */
	uint32_t max_mw;	      /* MWs and MRs together: at most max_mr */
	uint32_t max_fast_reg_pages;  /* of one SOFTHCA_WR_REG_MR */
	uint32_t max_sge;	      /* of one work request */
	uint32_t max_inline_bytes;    /* of one work request */
	uint32_t max_rd_atomic;	      /* READs and atomics outstanding in each direction */
	uint32_t gid_count;
	uint64_t max_mr_bytes;
	uint32_t max_mcast_groups; /* groups with at least one QP attached */
	uint32_t max_mcast_qps;	   /* QPs of one group */
	uint32_t max_mcast_attach; /* attachments in all groups together */
};
/* Answered locally. Returns 0. */
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
 * Allocates memory shared with the daemon: zeroed, aligned to 4 KiB, rounded up to whole pages, the
 * cheapest to register. It stays shared with a child after fork(). NULL with errno: ENOMEM, EINVAL
 * (0 bytes, or more than the device supports), ENOSPC (too many).
 */
SOFTHCA_API void *softhca_alloc(struct softhca_context *ctx, size_t bytes);
/* addr: as returned by softhca_alloc(), or NULL. 0, -EINVAL (not such memory), -EBUSY (an MR covers
 * it). */
SOFTHCA_API int softhca_free(struct softhca_context *ctx, void *addr);

enum softhca_access {
	SOFTHCA_ACCESS_LOCAL_WRITE = 1,
	SOFTHCA_ACCESS_REMOTE_WRITE = 2, /* needs LOCAL_WRITE */
	SOFTHCA_ACCESS_REMOTE_READ = 4,
	SOFTHCA_ACCESS_REMOTE_ATOMIC = 8, /* needs LOCAL_WRITE */
	SOFTHCA_ACCESS_MW_BIND = 16,	  /* windows and fast-registered regions may refer to it */
	SOFTHCA_ACCESS_ZERO_BASED = 32,	  /* requests address it by offset from its start */
	SOFTHCA_ACCESS_FLUSH_GLOBAL = 256,
	SOFTHCA_ACCESS_FLUSH_PERSISTENT =
		512, /* of queue pairs only: no memory here is persistent */
};

/* A memory region; its fields are read-only. */
struct softhca_mr {
	void *addr;
	size_t length;
	uint32_t lkey, rkey;
	struct softhca_pd *pd;
};
/*
 * Registers [addr, addr + length), any memory of the process, at any alignment. `access`: enum
 * softhca_access. Memory from softhca_alloc() registers fastest. Other private memory (heap, .data,
 * stacks, private file mappings) is made shareable in place, in whole pages, by moving it into a
 * memfd; it stays there, ready for the next registration. The move copies the pages and stops other
 * threads for a moment: their poll(), nanosleep() and the like may return EINTR, stores are never
 * lost. A child of fork() gets its own copy. Shared memory is used as it is: memfd, shm_open(),
 * tmpfs, hugetlbfs, MAP_ANONYMOUS; shmget() if the daemon may attach it (else EACCES, EPERM).
 * A length of 0 is allowed at any addr; the region then serves only requests of zero length.
 * NULL with errno: EFAULT (not mapped; not writable, with LOCAL_WRITE), EOPNOTSUPP (a shared
 * mapping of a file on disk, of a device, or of a file that cannot be found), EINVAL, ENOSPC (too
 * many MRs, too many mappings in the daemon, or too many scattered pages), ENOMEM, EAGAIN (a thread
 * of the process cannot be stopped), EFBIG (RLIMIT_FSIZE is set).
 */
SOFTHCA_API struct softhca_mr *softhca_reg_mr(struct softhca_pd *pd, void *addr, size_t length,
					      unsigned int access);
/* The same, but requests, local and remote, address its first byte as `iova` (0 with
 * ZERO_BASED). */
SOFTHCA_API struct softhca_mr *softhca_reg_mr_iova(struct softhca_pd *pd, void *addr, size_t length,
						   uint64_t iova, unsigned int access);
/* 0, -EBUSY (a window or a fast-registered region refers to it). Once it returns, nothing accesses
 * the memory through these keys. */
SOFTHCA_API int softhca_dereg_mr(struct softhca_mr *mr);

enum softhca_rereg_flags {
	SOFTHCA_REREG_MR_CHANGE_TRANSLATION = 1,
	SOFTHCA_REREG_MR_CHANGE_PD = 2,
	SOFTHCA_REREG_MR_CHANGE_ACCESS = 4,
};
/*
 * Changes the attributes of a region that `flags` names: address range, protection domain, access
 * rights. Its keys stay the same, but are invalid for a moment: no request may use them meanwhile.
 * 0, or, with nothing changed, -EBUSY (as softhca_dereg_mr()), -EINVAL (also for regions of
 * softhca_alloc_mr() or of zero length), or as softhca_reg_mr().
 */
SOFTHCA_API int softhca_rereg_mr(struct softhca_mr *mr, unsigned int flags, struct softhca_pd *pd,
				 void *addr, size_t length, unsigned int access);

/*
 * Allocates an invalid region without memory, for SOFTHCA_WR_REG_MR with at most `pages` pages;
 * addr and length stay NULL and 0. Free with softhca_dereg_mr(). NULL with errno: EINVAL, ENOSPC.
 */
SOFTHCA_API struct softhca_mr *softhca_alloc_mr(struct softhca_pd *pd, uint32_t pages);

/*
 * Allocates a region without memory that covers every address: reads from it return zeroes, writes
 * to it are discarded. Local access only. Free with softhca_dereg_mr(). NULL with errno: ENOSPC.
 */
SOFTHCA_API struct softhca_mr *softhca_alloc_null_mr(struct softhca_pd *pd);

enum softhca_mw_type {
	SOFTHCA_MW_TYPE_1 = 1, /* softhca_bind_mw(); any QP of the PD may reach it */
	SOFTHCA_MW_TYPE_2 = 2, /* SOFTHCA_WR_BIND_MW; only the QP that bound it may reach it (2B) */
};

/* A memory window. */
struct softhca_mw {
	uint32_t rkey; /* type 1: of the last softhca_bind_mw(); type 2: as allocated, each
			  SOFTHCA_WR_BIND_MW chooses its own tag */
	uint32_t type;
	struct softhca_pd *pd;
};
/* Unbound. NULL with errno: EINVAL (type), ENOSPC. */
SOFTHCA_API struct softhca_mw *softhca_alloc_mw(struct softhca_pd *pd, enum softhca_mw_type type);
/* The window may be bound. Returns 0; nothing accesses memory through it afterwards. */
SOFTHCA_API int softhca_dealloc_mw(struct softhca_mw *mw);

/* The key with the next tag, like ibv_inc_rkey(): bits 7:0 are chosen by the owner of a window or
 * of a region of softhca_alloc_mr(). */
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
/* Readable while events are pending: for poll() and O_NONBLOCK. Owned by the library. */
SOFTHCA_API int softhca_channel_fd(const struct softhca_channel *channel);

/*
 * Creates a CQ of at least `entries` entries (rounded up to a power of two). `user` is returned
 * with its events. `channel` may be NULL. NULL with errno: EINVAL (0 or more than max_cqe), ENOSPC,
 * ENOMEM. A CQ must have room for every work request that may complete into it: an overflow loses
 * completions, raises SOFTHCA_EVENT_CQ_ERR and disables the CQ.
 */
SOFTHCA_API struct softhca_cq *softhca_create_cq(struct softhca_context *ctx, uint32_t entries,
						 void *user, struct softhca_channel *channel);
/* 0, -EBUSY while QPs use it. Waits until all of its events are acknowledged. */
SOFTHCA_API int softhca_destroy_cq(struct softhca_cq *cq);
SOFTHCA_API void *softhca_cq_user(const struct softhca_cq *cq);
SOFTHCA_API uint32_t softhca_cq_number(const struct softhca_cq *cq);
SOFTHCA_API uint32_t softhca_cq_entries(const struct softhca_cq *cq);
/*
 * Changes the number of entries, rounded up as at creation. Completions continue meanwhile, those
 * not polled yet are kept, in order; other threads may poll and arm. 0; with the CQ unchanged:
 * -EINVAL (entries), -EBUSY (unpolled completions, or those that signaled sends in flight will
 * produce, do not fit), -ENOMEM, -ENOTCONN.
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
	SOFTHCA_WC_FLUSH = 8,
	SOFTHCA_WC_ATOMIC_WRITE = 9,
	SOFTHCA_WC_REG_MR = 15,
	SOFTHCA_WC_RECV = 128, /* test with &: a receive */
	SOFTHCA_WC_RECV_RDMA_WITH_IMM = 129,
};

enum softhca_wc_flags {
	SOFTHCA_WC_GRH = 1, /* UD: the first 40 bytes of the buffer hold the IP header; byte_len
				includes them */
	SOFTHCA_WC_WITH_IMM = 2,
	SOFTHCA_WC_WITH_INV = 8, /* invalidated_rkey is valid */
};

/* A work completion. Unless status is SUCCESS only wr_id, status, vendor_err and qp_num are
 * valid. */
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

/* Which IP header the first 40 bytes of a datagram's buffer hold. */
enum softhca_wc_sl {
	SOFTHCA_WC_SL_IPV6 = 9,
	SOFTHCA_WC_SL_IPV4 = 10, /* in the last 20 bytes */
};

/*
 * Takes up to n completions, oldest first. Never blocks. Returns their number; -EIO: none is left
 * and the daemon has died (noticed after some ten thousand empty polls, or at once if another call
 * noticed it). Requests outstanding at that time complete first, as WC_WR_FLUSH_ERR, including
 * unsignaled ones.
 */
SOFTHCA_API int softhca_poll_cq(struct softhca_cq *cq, int n, struct softhca_wc *wc);
/*
 * The same, completion by completion: softhca_start_poll() finds the first; then this thread alone
 * polls in pieces, until softhca_end_poll(), and other threads that start wait. softhca_next_poll()
 * finds the next. Both fill *wr_id and *status (enum softhca_wc_status) and return 0; or -ENOENT:
 * there is none, or -EIO, as softhca_poll_cq(). After an error softhca_start_poll() has not started,
 * so that there is nothing to end, and softhca_next_poll() may be called again. softhca_polled_wc()
 * fills *wc with all of the completion found last, for programs that need more of it.
 *
 * Completions are taken from the CQ some at a time; those that a poll leaves are the first that the
 * next one returns, of whichever kind. While a poll is open that has not returned them,
 * softhca_poll_cq() finds none in the same thread, and waits for its end in others. QPs may be
 * destroyed meanwhile, and the CQ resized, by any thread.
 */
SOFTHCA_API int softhca_start_poll(struct softhca_cq *cq, uint64_t *wr_id, uint32_t *status);
SOFTHCA_API int softhca_next_poll(struct softhca_cq *cq, uint64_t *wr_id, uint32_t *status);
SOFTHCA_API void softhca_polled_wc(const struct softhca_cq *cq, struct softhca_wc *wc);
SOFTHCA_API void softhca_end_poll(struct softhca_cq *cq);
/*
 * From now on polls of this CQ yield the CPU after each 512 empty ones in a row, and after each
 * empty one while another thread takes short turns on it: for programs that poll as if the device
 * needed no CPU, when it or another program may need this very one. Call it before the first poll.
 */
SOFTHCA_API void softhca_yield_when_empty(struct softhca_cq *cq);

/*
 * Requests one event for the next completion (with solicited_only: the next solicited or failed
 * one) that is written after this call. Repeated calls before the event ask for the same event: if
 * any of them asked for all completions, any completion raises it. Poll once more after arming,
 * before sleeping. 0, -EINVAL (the CQ has no channel).
 */
SOFTHCA_API int softhca_req_notify_cq(struct softhca_cq *cq, int solicited_only);

/*
 * Waits for a completion event of the channel and returns its CQ and user pointer in *cq and *user
 * (either may be NULL). Each event must be acknowledged. Events that are not taken are kept: 1024,
 * and 8 more for each object of the context. 0; -EAGAIN: the descriptor is O_NONBLOCK and no event
 * is pending; -EINTR; -EIO: the daemon has died.
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
	SOFTHCA_EVENT_PATH_MIG = 6,	 /* qp: has moved to its alternate path */
	SOFTHCA_EVENT_PATH_MIG_ERR = 7,	 /* qp: its peer asked for a path other than that one */
	SOFTHCA_EVENT_DEVICE_FATAL =
		8, /* the HCA has been removed, or the daemon has died; once, then -EIO */
	SOFTHCA_EVENT_PORT_ACTIVE = 9,
	SOFTHCA_EVENT_PORT_ERR = 10,
	SOFTHCA_EVENT_SRQ_ERR = 14,	/* srq: failed, serves no more requests */
	SOFTHCA_EVENT_SRQ_LIMIT = 15,	/* srq: fewer requests than its limit are left */
	SOFTHCA_EVENT_QP_LAST_WQE = 16, /* qp: in ERR, has taken the last request from its SRQ */
	SOFTHCA_EVENT_GID_CHANGE = 18,	/* the port's addresses have changed */
};
struct softhca_event {
	uint32_t type;		 /* enum softhca_event_type */
	uint32_t number;	 /* QPN, CQN, SRQN or port, when it was raised */
	struct softhca_cq *cq;	 /* of CQ events; NULL if destroyed since */
	struct softhca_qp *qp;	 /* likewise of QP events */
	struct softhca_srq *srq; /* likewise of SRQ events */
};
/* Readable while asynchronous events are pending; owned by the library. As many of them are kept as
 * of completion events. The last is DEVICE_FATAL, when the daemon has died. -errno if it cannot be
 * created. */
SOFTHCA_API int softhca_async_fd(struct softhca_context *ctx);
/* Waits for one. 0; -EAGAIN: the descriptor is O_NONBLOCK and none is pending; -EINTR; -EIO. */
SOFTHCA_API int softhca_get_async_event(struct softhca_context *ctx, struct softhca_event *event);
/*
 * Makes asynchronous events need acknowledgement; call it before creating objects. From then on no
 * event names a destroyed object, and the destruction of a CQ, QP or SRQ waits until all its events
 * that were returned have been acknowledged.
 */
SOFTHCA_API void softhca_acknowledge_async_events(struct softhca_context *ctx);
/* Only the event's cq, qp and srq are used; without them the call does nothing. */
SOFTHCA_API void softhca_ack_async_event(const struct softhca_event *event);

/* ---- shared receive queues ---- */

struct softhca_srq_init_attr {
	void *user;
	uint32_t max_wr, max_sge; /* exact: not rounded up */
};
/*
 * Creates a queue of receive requests for many QPs of any service and any PD; each takes one
 * request per message. The local keys in the requests belong to `pd`. Requests complete into the
 * receive CQ of the QP that took them. NULL with errno: EINVAL (max_wr is 0; beyond the device's
 * limits), ENOSPC, ENOMEM.
 *
 * If a QP is destroyed or reset in the middle of a message, its request is dropped without a
 * completion and no longer counts against max_wr.
 */
SOFTHCA_API struct softhca_srq *softhca_create_srq(struct softhca_pd *pd,
						   struct softhca_srq_init_attr *attr);
/* 0, -EBUSY while QPs use it. */
SOFTHCA_API int softhca_destroy_srq(struct softhca_srq *srq);
SOFTHCA_API uint32_t softhca_srq_number(const struct softhca_srq *srq);
SOFTHCA_API void *softhca_srq_user(const struct softhca_srq *srq);

/*
 * Requests one SOFTHCA_EVENT_SRQ_LIMIT when fewer than `limit` requests are left, at once if that
 * is already so; 0 disarms. 0, -EINVAL (more than max_wr).
 */
SOFTHCA_API int softhca_arm_srq(struct softhca_srq *srq, uint32_t limit);

struct softhca_srq_attr {
	uint32_t max_wr, max_sge;
	uint32_t limit;	    /* as armed; 0 after the event */
	uint32_t available; /* posted requests not yet taken by a QP */
	uint32_t error;	    /* 1: see SOFTHCA_EVENT_SRQ_ERR */
};
/* Fills *attr with a snapshot. 0, or -errno with *attr untouched. */
SOFTHCA_API int softhca_query_srq(struct softhca_srq *srq, struct softhca_srq_attr *attr);

/* ---- queue pairs ---- */

enum softhca_qp_type { SOFTHCA_QP_RC, SOFTHCA_QP_UC, SOFTHCA_QP_UD };
/* QP 1, a UD QP: reserved for the daemon itself, EPERM for everyone else. */
#define SOFTHCA_QP_GSI ((enum softhca_qp_type)3)

struct softhca_qp_cap {
	uint32_t max_send_wr, max_recv_wr;
	uint32_t max_send_sge, max_recv_sge;
	uint32_t max_inline_data; /* bytes */
};

struct softhca_qp_init_attr {
	void *user;
	struct softhca_cq *send_cq, *recv_cq; /* may be the same */
	struct softhca_qp_cap cap;	      /* exact: not rounded up */
	enum softhca_qp_type type;
	int sq_sig_all;		 /* every send request generates a CQE */
	struct softhca_srq *srq; /* source of receives (cap.max_recv_* is 0); NULL: own RQ */
};
/* NULL with errno: EINVAL (beyond the device's limits), ENOSPC, ENOMEM; EPERM, EBUSY (QP 1). The QP
 * is in RST. */
SOFTHCA_API struct softhca_qp *softhca_create_qp(struct softhca_pd *pd,
						 struct softhca_qp_init_attr *attr);
/* 0; -EBUSY: still attached to a multicast group. Discards completions not polled yet. */
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
/* The state as the library knows it: the last one set, or ERR after an error completion was polled.
 * Answered locally. */
SOFTHCA_API enum softhca_qp_state softhca_qp_current_state(const struct softhca_qp *qp);

/* Which attributes a modification carries (numbers as IBV_QP_*). */
enum softhca_qp_attr_mask {
	SOFTHCA_QP_STATE = 1 << 0,
	SOFTHCA_QP_CUR_STATE = 1 << 1,
	SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2, /* RTS to SQD: event when drained; no value */
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
	SOFTHCA_QP_ALT_PATH = 1 << 14, /* alternate, alternate_timeout, _pkey_index, _port */
	SOFTHCA_QP_MIN_RNR_TIMER = 1 << 15,
	SOFTHCA_QP_SQ_PSN = 1 << 16,
	SOFTHCA_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	SOFTHCA_QP_PATH_MIG_STATE = 1 << 18,
	SOFTHCA_QP_DEST_QPN = 1 << 20,
};

/* The destination of a connection or a datagram. */
struct softhca_ah_attr {
	uint8_t dgid[16];
	uint8_t gid_index; /* ours */
	uint8_t traffic_class;
	uint8_t hop_limit;   /* 0: default, 64 (1 for a multicast group) */
	uint8_t sl;	     /* 802.1p priority, 1..7, of tagged packets; 0: the HCA's default */
	uint32_t flow_label; /* 20 bits */
};

/* Automatic path migration: an armed queue pair whose peer is armed, too, moves to its alternate
 * path when its retries are used up, when its peer moves, or when it is set to MIGRATED. */
enum softhca_mig_state {
	SOFTHCA_MIG_MIGRATED, /* to be set when armed */
	SOFTHCA_MIG_REARM,    /* to be set when migrated, with an alternate path */
	SOFTHCA_MIG_ARMED,    /* entered by itself when the peer has rearmed, too */
};

struct softhca_qp_attr {
	uint32_t state, cur_state; /* enum softhca_qp_state */
	uint32_t access;	   /* enum softhca_access: what remote requests may do */
	uint32_t qkey;
	uint32_t dest_qpn;
	uint32_t rq_psn, sq_psn; /* 24 bits */
	struct softhca_ah_attr av;
	uint8_t path_mtu;      /* enum softhca_mtu */
	uint8_t timeout;       /* 4.096 µs × 2^timeout, 0: infinite */
	uint8_t retry_cnt;     /* 0..7 */
	uint8_t rnr_retry;     /* 0..6, 7: infinite */
	uint8_t min_rnr_timer; /* code, 0..31 */
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t pkey_index; /* 0 */
	uint8_t port;	    /* 1 */
	struct softhca_ah_attr alternate;
	uint8_t alternate_timeout;    /* replaces timeout after a migration */
	uint8_t alternate_pkey_index; /* 0 */
	uint8_t alternate_port;	      /* 1 */
	uint8_t path_mig_state;	      /* enum softhca_mig_state */
	uint8_t reserved[3];
};
/*
 * Modifies attributes, and usually the state. `mask` (enum softhca_qp_attr_mask) must contain what
 * the transition requires and nothing that it forbids. 0; -EINVAL; -EHOSTUNREACH: the address does
 * not resolve (to RTR; may take seconds); -EACCES: the HCA does not admit that peer; -EPERM: a
 * controlled Q_Key (top bit set) needs root.
 */
SOFTHCA_API int softhca_modify_qp(struct softhca_qp *qp, const struct softhca_qp_attr *attr,
				  uint32_t mask);
/* Fills in all attributes as the daemon has them; which are valid follows from the service. 0. */
SOFTHCA_API int softhca_query_qp(struct softhca_qp *qp, struct softhca_qp_attr *attr);

/* Enhanced connection establishment: what a queue pair can do beyond the standard. */
struct softhca_ece {
	uint32_t vendor_id;
	uint32_t options;
};
/* What the QP offers its peer; from softhca_set_ece() or RTR on, what was agreed. 0; -EOPNOTSUPP:
 * nothing. */
SOFTHCA_API int softhca_query_ece(struct softhca_qp *qp, struct softhca_ece *ece);
/* In: *ece is what the peer has offered or agreed to. Out: what both can do; options is 0 if that
 * is nothing, as with peers of other makers. Call it before RTR, at both ends or at neither; a
 * reset ends the agreement. 0; -EINVAL: a later state. */
SOFTHCA_API int softhca_set_ece(struct softhca_qp *qp, struct softhca_ece *ece);

/* What two programs exchange to connect. */
struct softhca_endpoint {
	uint32_t qpn;
	uint32_t psn; /* first PSN that the sender of this structure sends */
	uint8_t gid[16];
};
/* Fills *local for the peer: QPN, a random PSN, the GID at `gid_index`. 0, -ENOENT. */
SOFTHCA_API int softhca_local_endpoint(struct softhca_qp *qp, uint32_t gid_index,
				       struct softhca_endpoint *local);

/* Options of a connection; initialised by softhca_connect_defaults(). */
struct softhca_connect_attr {
	uint32_t gid_index;
	uint32_t access;  /* default: all remote rights */
	uint8_t path_mtu; /* default 0: the port's */
	uint8_t timeout, retry_cnt, rnr_retry,
		min_rnr_timer;			   /* defaults 14 (67 ms), 7, 7, 12 (640 µs) */
	uint8_t max_rd_atomic, max_dest_rd_atomic; /* default 16 */
	uint8_t traffic_class, hop_limit, sl;
	uint8_t reserved[2];
	uint32_t flow_label;
	uint32_t qkey; /* UD; default 0x11111111 */
};
SOFTHCA_API void softhca_connect_defaults(struct softhca_context *ctx,
					  struct softhca_connect_attr *attr);
/*
 * RST → INIT with the access rights (or Q_Key) of `attr` (NULL: defaults), after which receives may
 * be posted. 0 or -errno.
 */
SOFTHCA_API int softhca_init_qp(struct softhca_qp *qp, const struct softhca_connect_attr *attr);
/*
 * (RST →) INIT → RTR → RTS, connected to *remote, starting at the PSN of *local. `attr` NULL:
 * defaults. UD: remote may be NULL. Starts from RST, or from INIT if receives have to be posted
 * first. 0, or as softhca_modify_qp().
 */
SOFTHCA_API int softhca_connect_qp(struct softhca_qp *qp, const struct softhca_endpoint *local,
				   const struct softhca_endpoint *remote,
				   const struct softhca_connect_attr *attr);

/* A destination of UD sends; asks the daemon for the next hop. NULL with errno: EHOSTUNREACH,
 * EACCES, EINVAL, ENOMEM. */
SOFTHCA_API struct softhca_ah *softhca_create_ah(struct softhca_pd *pd,
						 const struct softhca_ah_attr *attr);
/* The same for callers that know the Ethernet address of the next hop and a valid GID index:
 * answered locally. NULL with errno: ENOMEM. */
SOFTHCA_API struct softhca_ah *softhca_create_ah_by(struct softhca_pd *pd,
						    const struct softhca_ah_attr *attr,
						    const uint8_t mac[6]);
SOFTHCA_API int softhca_destroy_ah(struct softhca_ah *ah);
/* Resolves the Ethernet address of the next hop, as softhca_create_ah() does. 0, -EHOSTUNREACH,
 * -EACCES, -EINVAL. */
SOFTHCA_API int softhca_resolve(struct softhca_context *ctx, const struct softhca_ah_attr *attr,
				uint8_t mac[6]);

/*
 * Attaches a UD QP, in any state, to the multicast group mgid (an IPv6 address in ff00::/8, or
 * v4-mapped in 224.0.0.0/4): the QP then also receives datagrams to the group whose Q_Key is its
 * own. Datagrams sent to a group loop back to all attached QPs of this device, including the
 * sender. Sending needs an address handle of the group and remote_qpn 0xffffff, but no attachment.
 * Attaching twice is a no-op. 0; -EINVAL (not a multicast address, not a UD QP); -ENOMEM
 * (max_mcast_*).
 */
SOFTHCA_API int softhca_attach_mcast(struct softhca_qp *qp, const uint8_t mgid[16]);
/* 0, -EINVAL (it is not attached). */
SOFTHCA_API int softhca_detach_mcast(struct softhca_qp *qp, const uint8_t mgid[16]);

/* ---- work requests ---- */

struct softhca_sge {
	uint64_t addr;
	uint32_t length; /* bytes; 0: the entry is skipped */
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
	/* These change a key; RC and UC. They execute in order, after the local reads of earlier
	 * requests; with SOFTHCA_SEND_FENCE also after the responses to earlier READs and atomics.
	 * Refused: SOFTHCA_WC_MW_BIND_ERR. Flushed: it may or may not have executed, so discard the
	 * key (softhca_dealloc_mw(), softhca_dereg_mr()). */
	SOFTHCA_WR_LOCAL_INV = 7, /* invalidate_rkey: a window of type 2, a region of REG_MR */
	SOFTHCA_WR_BIND_MW = 8,
	SOFTHCA_WR_SEND_WITH_INV = 9,
	SOFTHCA_WR_REG_MR = 12,
	/* Completes when the data of all requests before are where the placement type says.
	 * wr.atomic: `swap` is the number of bytes at remote_addr that matter, compare_add is enum
	 * softhca_flush; no entries. RC; needs the rights to flush there, and counts as a READ
	 * (max_rd_atomic). */
	SOFTHCA_WR_FLUSH = 14,
	/* The first eight bytes of the entries, inline or not, become visible at the peer at once,
	 * behind the data of all requests before. wr.rdma; a multiple of 8. RC; needs
	 * SOFTHCA_ACCESS_REMOTE_WRITE there, and counts as a READ (max_rd_atomic). */
	SOFTHCA_WR_ATOMIC_WRITE = 15,
};

/* Placement types, one or both; and whether the range is flushed or all that the key names. */
enum softhca_flush {
	SOFTHCA_FLUSH_GLOBAL = 1, /* every CPU of the peer sees it */
	SOFTHCA_FLUSH_PERSISTENT = 2,
	SOFTHCA_FLUSH_REGION = 16,
};

enum softhca_send_flags {
	SOFTHCA_SEND_FENCE = 1,	   /* wait for earlier READs and atomics */
	SOFTHCA_SEND_SIGNALED = 2, /* generate a CQE */
	SOFTHCA_SEND_SOLICITED = 4,
	SOFTHCA_SEND_INLINE = 8, /* copy data now, ignore lkeys; at most max_inline_data bytes */
};

/* What to bind a window to: part of a region with SOFTHCA_ACCESS_MW_BIND (and LOCAL_WRITE, if the
 * window permits writing). */
struct softhca_mw_bind_info {
	struct softhca_mr *mr;
	uint64_t addr;
	uint64_t length; /* 0, type 1 only: unbind */
	uint32_t access; /* enum softhca_access: remote rights; type 2: also ZERO_BASED */
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
			uint32_t rkey; /* bits 7:0: the new tag of the window */
			struct softhca_mw_bind_info bind_info;
		} bind_mw;
		struct {
			uint32_t key;	 /* of softhca_alloc_mr(), with its new tag */
			uint32_t access; /* enum softhca_access */
			const struct softhca_mr *memory; /* owner of the pages, with
							    SOFTHCA_ACCESS_MW_BIND */
			uint64_t iova;	      /* iova % page size is the offset in the first page */
			uint64_t length;      /* must need exactly `pages` pages */
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
 * Posts a list of send requests with one doorbell. 0, or: -EINVAL (opcode, number of entries or
 * inline length that the QP does not support; QP not in RTS, SQD, SQE or ERR), -ENOMEM (queue full:
 * poll the CQ; unsignaled requests leave the queue when a later one completes), -EIO (the daemon
 * has died). On failure *bad_wr (may be NULL) is the first request that was not posted; those
 * before it were. Never waits.
 */
SOFTHCA_API int softhca_post_send(struct softhca_qp *qp, struct softhca_send_wr *wr,
				  struct softhca_send_wr **bad_wr);
/* The same for the opcodes in `opcodes` (a bit for each, of those that there are); any other is
 * refused as -EOPNOTSUPP. */
SOFTHCA_API int softhca_post_send_of(struct softhca_qp *qp, uint32_t opcodes,
				     struct softhca_send_wr *wr, struct softhca_send_wr **bad_wr);

/*
 * The same, request by request: start, add any number, then end or abort. In between this thread
 * holds the send queue: it must not post to it by other calls, and other threads wait.
 * softhca_post_add() copies *wr and everything it points to, and ignores wr->next.
 *
 * softhca_post_add(): 0, or why the batch will fail. softhca_post_end(): 0, all are posted with one
 * doorbell; or the first failure, as softhca_post_send(), and none is posted. softhca_post_abort():
 * none is posted.
 */
SOFTHCA_API void softhca_post_start(struct softhca_qp *qp);
SOFTHCA_API int softhca_post_add(struct softhca_qp *qp, const struct softhca_send_wr *wr);
SOFTHCA_API int softhca_post_end(struct softhca_qp *qp);
SOFTHCA_API void softhca_post_abort(struct softhca_qp *qp);

/* Bytes to copy. */
struct softhca_buffer {
	const void *addr;
	size_t length;
};
/*
 * A request of a batch in pieces, in place of softhca_post_add(): each is written into the queue at
 * once, so that no struct softhca_send_wr is filled and read again. softhca_post_begin() begins it;
 * `opcode` is any but BIND_MW and REG_MR; operations without remote_addr and rkey ignore them, and
 * SOFTHCA_SEND_INLINE is ignored. The other calls complete it, in any order, as far as it needs them.
 * It ends where the next begins, or the batch:
 *
 *   softhca_post_imm()          immediate data, or the key to invalidate; else 0
 *   softhca_post_operands()     those of wr.atomic, of atomics and FLUSH; else 0
 *   softhca_post_address()      of datagrams, each of which needs one
 *   softhca_post_sge()          its data: one entry, as in struct softhca_sge;
 *   softhca_post_sge_list()     or n entries;
 *   softhca_post_inline()       or `bytes` bytes, copied;
 *   softhca_post_inline_list()  or n buffers, copied one behind the other
 *
 * Nothing that a pointer names is read after the call.
 * softhca_post_end() fails as after softhca_post_add(), and as -EINVAL after a piece that the request
 * cannot have, after data if it has some already, and after a piece before softhca_post_begin().
 */
SOFTHCA_API void softhca_post_begin(struct softhca_qp *qp, uint32_t opcode, uint64_t wr_id,
				    uint32_t send_flags, uint64_t remote_addr, uint32_t rkey);
SOFTHCA_API void softhca_post_imm(struct softhca_qp *qp, uint32_t imm);
SOFTHCA_API void softhca_post_operands(struct softhca_qp *qp, uint64_t compare_add, uint64_t swap);
SOFTHCA_API void softhca_post_address(struct softhca_qp *qp, const struct softhca_ah *ah,
				      uint32_t remote_qpn, uint32_t remote_qkey);
SOFTHCA_API void softhca_post_sge(struct softhca_qp *qp, uint32_t lkey, uint64_t addr,
				  uint32_t length);
SOFTHCA_API void softhca_post_sge_list(struct softhca_qp *qp, size_t n,
				       const struct softhca_sge *list);
SOFTHCA_API void softhca_post_inline(struct softhca_qp *qp, const void *data, size_t bytes);
SOFTHCA_API void softhca_post_inline_list(struct softhca_qp *qp, size_t n,
					  const struct softhca_buffer *list);

struct softhca_mw_bind {
	uint64_t wr_id;
	uint32_t send_flags;
	struct softhca_mw_bind_info bind_info;
};
/* Posts the bind of a type 1 window and updates its rkey at once. 0, -EINVAL (type 2), or as
 * softhca_post_send(). */
SOFTHCA_API int softhca_bind_mw(struct softhca_qp *qp, struct softhca_mw *mw,
				const struct softhca_mw_bind *bind);

/* Posts receive requests. 0, -EINVAL (too many entries; a QP with an SRQ), -ENOMEM (queue full),
 * -EIO; *bad_wr as above. */
SOFTHCA_API int softhca_post_recv(struct softhca_qp *qp, struct softhca_recv_wr *wr,
				  struct softhca_recv_wr **bad_wr);

/* The same for an SRQ, whatever the state of its QPs. -ENOMEM: max_wr are posted and not polled. */
SOFTHCA_API int softhca_post_srq_recv(struct softhca_srq *srq, struct softhca_recv_wr *wr,
				      struct softhca_recv_wr **bad_wr);

/* ---- strings ---- */

/* Describes a number in English; never NULL; static storage. */
SOFTHCA_API const char *softhca_wc_status_str(uint32_t status);
SOFTHCA_API const char *softhca_event_type_str(uint32_t type);
SOFTHCA_API const char *softhca_qp_state_str(uint32_t state);

#ifdef __cplusplus
}
#endif
#endif
