/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_CONTROL_H
#define HOST_ABI_CONTROL_H
/*
 * The control socket: Unix SOCK_SEQPACKET, one request, one reply, in order. A request is a struct
 * control_header and the body that control_requests.def names; the reply has the same header
 * (status 0 or -errno) and, if status is 0, its reply body, which is of fixed length but for
 * VIEW's. Descriptors travel by SCM_RIGHTS with the request or reply that names them. A malformed
 * request (unknown type, wrong length, status or reserved not 0, wrong number of descriptors, out
 * of order: control_when()) ends the connection. Everything the client created is destroyed when
 * the connection ends.
 *
 * Wake-ups. The bell is a Unix SOCK_DGRAM pair that the daemon creates for each client, and writes a
 * datagram into after putting events into the client's event queue if client_page.waiting was set;
 * the content is ignored, a full socket counts as success, and the client cannot write into it. The
 * kick is an eventfd of each client, which the client adds 1 to after ringing a doorbell if
 * uar_page.daemon_asleep was set. It wakes the lcores themselves, which neither read nor write it:
 * a hostile client can keep them from sleeping, as it could by doorbells, and nothing else. (So the
 * bell is none: a client could fill it, or make its writer block.)
 */
#include <stdint.h>
#include <assert.h>
#include "host-abi/trace_record.h"

#define CONTROL_VERSION	       14u
#define CONTROL_BYTES_MAX      512
#define CONTROL_TEXT_BYTES_MAX 65536 /* of the reply to VIEW */

/* CONTROL_HELLO and so on: control_requests.def has their bodies, replies and descriptors. */
enum control_type {
	CONTROL_TYPE_NONE, /* no request */
#define REQUEST(NAME, name, body, reply, fds) CONTROL_##NAME,
#include "host-abi/control_requests.def"
	CONTROL_TYPE_END,
};

/* When a request is valid: HELLO is valid once. */
enum control_time {
	CONTROL_BEFORE_HELLO = 1,
	CONTROL_AFTER_HELLO = 2,
	CONTROL_ANY_TIME = 3,
};
static inline enum control_time control_when(uint32_t type)
{
	switch (type) {
	case CONTROL_LIST_DEVICES:
	case CONTROL_READ_ATTRIBUTE:
	case CONTROL_GET_SETTING:
	case CONTROL_VIEW:
		return CONTROL_ANY_TIME;
	/* The rights of the process that connected count; a program that uses the HCA may have
	 * dropped its own since. So not after HELLO. */
	case CONTROL_SET:
	case CONTROL_REMOVE_HCA:
	case CONTROL_ADD_HCA:
	case CONTROL_RELOAD:
	case CONTROL_CAPTURE:
	case CONTROL_CAPTURE_CHANNEL:
	case CONTROL_PAUSE:
	case CONTROL_STEP:
	case CONTROL_RESUME:
	case CONTROL_TRACE:
	case CONTROL_READ_TRACE:
	case CONTROL_HELLO:
	case CONTROL_OPEN_CM:
		return CONTROL_BEFORE_HELLO;
	default:
		return CONTROL_AFTER_HELLO;
	}
}

struct control_header {
	uint32_t type;
	int32_t status;	 /* 0 in requests */
	uint32_t length; /* of the body that follows, bytes */
	uint32_t reserved;
};

struct control_number {
	uint32_t number;
	uint32_t reserved;
};

struct control_hello {
	uint32_t version;
	uint32_t reserved;
	char device[32]; /* HCA wanted, "" = the first */
};

struct control_hello_reply {
	uint32_t version;
	uint32_t queue_pd; /* the PD to register queue memory in (SQ, RQ, CQ, records) */
	uint32_t max_qp, max_cq, max_mr, max_pd;
	uint32_t max_qp_wr, max_cqe, max_sge, max_inline_bytes;
	uint32_t max_rd_atomic;
	uint32_t gid_count;
	uint64_t guid;
	uint64_t max_mr_bytes;
	char device[32];
	uint32_t max_srq, max_srq_wr;
	uint32_t max_mw;	     /* MWs and MRs share it */
	uint32_t max_fast_reg_pages; /* of one fast registration */
	uint32_t max_mcast_groups;   /* multicast groups with attached QPs ... */
	uint32_t max_mcast_qps;	     /* ... QPs of one group, and attachments in all */
	uint32_t max_mcast_attach;
	uint32_t reserved;
};

struct control_port_reply {
	uint32_t state;		      /* 4 = active, 1 = down, as IBV_PORT_* */
	uint32_t max_mtu, active_mtu; /* 1..5 = 256..4096 */
	uint32_t speed_mbps;
	uint32_t gid_count;
	uint32_t pkey_count;
	uint8_t mac[6];
	uint8_t pad[2];
};

/* The daemon's devices, one by one, for clients without an open device. */
struct control_list_devices {
	uint32_t version;
	uint32_t index; /* from 0 */
};

struct control_device_reply {
	char device[32];
	uint64_t guid;
	uint32_t count; /* of devices */
	uint32_t reserved;
	struct control_port_reply port;
};

/* The current text of a file below /sys/class/infiniband/DEVICE/. */
struct control_read_attribute {
	char device[32];
	char name[96]; /* "ports/1/counters/port_rcv_data" */
};

struct control_open_cm {
	uint32_t version;
	uint32_t reserved; /* 0 */
};

struct control_capture {
	uint32_t version;
	uint32_t snap;	 /* most bytes of a frame; 0: all */
	uint64_t bytes;	 /* of the memory, up to CAPTURE_BYTES_MAX */
	char device[32]; /* "": the first */
};

struct control_capture_channel {
	struct control_capture capture;
	char channel[16]; /* its name in topology.def */
};

struct control_capture_reply {
	char device[32];
};

struct control_attribute {
	uint32_t bytes;
	uint32_t reserved;
	char text[480]; /* ends with a newline, not with a NUL */
};

/* A setting of the daemon, as it applies now. All texts end with a NUL. */
struct control_get_setting {
	uint32_t version;
	uint32_t index; /* from 0 */
};

struct control_setting {
	char section[32]; /* "daemon", or the name of an HCA */
	char key[32];
	uint32_t runtime;   /* 1: CONTROL_SET can change it; 0: needs a restart */
	uint32_t shortened; /* 1: the value did not fit */
	char value[400];
};

/* Changes a setting, as the line "key = value" in that section would. */
struct control_set {
	uint32_t version;
	uint32_t reserved;
	char assignment[480]; /* "SECTION.KEY=VALUE" */
};

/* Takes an HCA out of the running daemon. */
struct control_remove_hca {
	uint32_t version;
	uint32_t reserved; /* 0 */
	char device[32];   /* ends with a NUL */
};

/* Adds an HCA to the running daemon. Both texts end with a NUL. */
struct control_add_hca {
	uint32_t version;
	uint32_t reserved; /* 0 */
	char device[32];
	char settings[448]; /* lines "KEY=VALUE", as in its section of a file */
};

struct control_reload {
	uint32_t version;
	uint32_t reserved; /* 0 */
};

/* To SET, REMOVE_HCA, ADD_HCA, RELOAD, PAUSE, STEP and RESUME. */
struct control_change_reply {
	int32_t error; /* 0; -errno: nothing has changed, and the text says why */
	uint32_t reserved;
	char text[480]; /* what was done */
};

/* The same views as those of DPDK's telemetry socket. Both texts end with a NUL. */
struct control_view {
	uint32_t version;
	uint32_t reserved; /* 0 */
	char name[32];	   /* "status", "qp" ... */
	char parameters[128];
};

/* Modules of the pipeline to pause, to step, or to resume. */
enum { CONTROL_STEPS_MAX = 1000 };
struct control_pause {
	uint32_t version;
	uint32_t keep;	/* PAUSE: 1: beyond the end of this connection */
	uint32_t steps; /* STEP: 1..CONTROL_STEPS_MAX */
	uint32_t reserved;
	char device[32]; /* "": all that allow it */
	char name[32];	 /* of a module or a stage; "": all */
};

struct control_trace {
	uint32_t version;
	uint32_t qpn;
	char device[32]; /* "": the first with such a queue pair */
};

struct control_trace_reply {
	uint64_t tsc_hz;
	uint32_t places; /* number of places: each has the records of one stage, in order */
	uint32_t reserved;
};

struct control_read_trace {
	uint32_t version;
	uint32_t place;
	uint32_t from; /* number of its records read so far */
	uint32_t reserved;
};

enum { CONTROL_TRACE_RECORDS = 13 };
struct control_read_trace_reply {
	char device[32];
	uint32_t qpn;
	uint32_t full; /* 1: what came later was not recorded */
	uint32_t count;
	uint32_t reserved;
	struct trace_record record[CONTROL_TRACE_RECORDS];
};

struct control_gid_reply {
	uint8_t gid[16]; /* IPv6 or v4-mapped address */
	uint32_t index;
	uint32_t reserved;
};

/*
 * A piece of client memory: a part of a memory file (memfd, tmpfs, hugetlbfs, sealed or not: if a
 * client takes memory away, the daemon reads zeroes and disconnects it), mapped into the daemon
 * once. It costs only address space: what no MR covers is never touched, so a piece may be much
 * larger than what is registered in it. It keeps the file's memory alive. offset and bytes are
 * multiples of the file's page size, inside the file.
 */
enum piece_flags {
	PIECE_READ_ONLY = 1, /* the descriptor may be read-only; no MR in it has LOCAL_WRITE */
};
struct control_piece {
	uint64_t offset, bytes;
	uint32_t flags; /* enum piece_flags */
	uint32_t reserved;
};

/* Pieces of one file at equal distances: the first, and others that the client expects to need. */
enum { CONTROL_PIECES_MAX = 8 };
struct control_pieces {
	struct control_piece first;
	uint64_t stride; /* bytes from the offset of one to that of the next */
	uint32_t count;	 /* 1..CONTROL_PIECES_MAX */
	uint32_t reserved;
};
struct control_pieces_reply {
	uint32_t count; /* 1 or more: the first, and those that could be mapped after it */
	uint32_t reserved;
	uint32_t number[CONTROL_PIECES_MAX];
};

/* A piece that is a whole System V shared memory segment in the daemon's IPC namespace, which the
 * client may attach. */
struct control_segment {
	uint32_t id;	/* of shmget() */
	uint32_t flags; /* enum piece_flags */
};

/* Bytes [offset, offset + bytes) of a piece, at least one. */
struct control_run {
	uint32_t piece;
	uint32_t reserved;
	uint64_t offset, bytes;
};

/* Runs that precede those of the next REG_MR or REREG_MR. */
enum { CONTROL_RUNS_MAX = 16 };
struct control_runs {
	uint32_t count; /* 1..CONTROL_RUNS_MAX */
	uint32_t reserved;
	struct control_run run[CONTROL_RUNS_MAX];
};

/* Access rights, the bits of ibv_access_flags. */
enum access_flags {
	ACCESS_LOCAL_WRITE = 1,
	ACCESS_REMOTE_WRITE = 2,
	ACCESS_REMOTE_READ = 4,
	ACCESS_REMOTE_ATOMIC = 8,
	ACCESS_MW_BIND = 16,	/* windows and fast-registered regions may refer to it */
	ACCESS_ZERO_BASED = 32, /* its addresses begin at 0 */
	/* Annex A19 of the standard: a FLUSH may make what was written visible to everybody, or
	 * store it for good. A queue pair may allow both; no memory here has the second. */
	ACCESS_FLUSH_GLOBAL = 256,
	ACCESS_FLUSH_PERSISTENT = 512,
};

/*
 * The memory of an MR: consecutive runs, in any order and of any pieces. Where a run does not
 * continue the previous one in its piece, it begins at a page of 4 KiB, and the bytes so far, plus
 * the offset of the first in its page, are whole pages: as all mappings of a program are.
 */
struct control_mr {
	uint32_t pd;
	uint32_t access;
	uint64_t iova;	/* the virtual address of its first byte */
	uint32_t count; /* of run[], 0..CONTROL_RUNS_MAX, after those of ADD_RUNS; 0: no bytes */
	uint32_t reserved;
	struct control_run run[CONTROL_RUNS_MAX];
};

struct control_mr_reply {
	uint32_t lkey;
	uint32_t rkey;
};

/* A key for fast registrations (REG_MR): invalid until the first one; it has no memory itself. */
struct control_alloc_mr {
	uint32_t pd;
	uint32_t pages; /* most in one registration, 1..max_fast_reg_pages */
};

/* What to change of an MR; the keys stay. */
enum rereg_mask {
	REREG_TRANSLATION = 1, /* runs, iova */
	REREG_PD = 2,
	REREG_ACCESS = 4,
};

struct control_rereg_mr {
	uint32_t lkey;
	uint32_t mask;	      /* enum rereg_mask, at least one */
	struct control_mr mr; /* other fields are ignored */
};

/* An unbound memory window. */
struct control_mw {
	uint32_t pd;
	uint32_t type; /* 1 or 2 (2B) */
};

struct control_cq {
	uint32_t log_entries;
	uint32_t lkey;	    /* of the queue memory, in queue_pd, local write */
	uint64_t buffer_va; /* entries × 32 bytes, aligned to 64, every owner bit set to hardware */
	uint64_t record_va; /* struct cq_record */
};

/*
 * Moves the CQ to another buffer. Entries that the client has not taken stay in the old one: after
 * the reply it copies each, in order, to its index in the new one, unless its owner bit says
 * "hardware", in which case it will be written there. The record stays where it is. Nothing touches
 * the old buffer after the reply.
 */
struct control_resize_cq {
	uint32_t cqn;
	uint32_t log_entries;
	uint32_t lkey; /* of the new buffer, in queue_pd, local write */
	uint32_t reserved;
	uint64_t buffer_va; /* as in control_cq */
};

/*
 * QP 1 of the HCA, the general services interface, through which connection managers talk to each
 * other: a UD QP with the number 1. There is one; only the daemon itself may create it (-EPERM),
 * once (-EBUSY).
 */
enum { CONTROL_SERVICE_GSI = 3, CONTROL_GSI_QPN = 1 };

/* Q_Keys with this bit are controlled: only the daemon itself and root may set them on a QP
 * (-EPERM). A send request that carries it uses the QP's own Q_Key. */
#define CONTROL_QKEY_CONTROLLED (1u << 31)

struct control_qp {
	uint32_t service; /* enum qp_service, CONTROL_SERVICE_GSI */
	uint32_t pd;
	uint32_t send_cqn, recv_cqn;
	uint32_t lkey;		 /* of the queue memory, in queue_pd */
	uint32_t sq_bytes;	 /* multiple of 64 */
	uint32_t rq_log_entries; /* 0xff: no receive queue */
	uint32_t rq_stride;	 /* bytes, multiple of 16, 48..512 */
	uint64_t sq_va, rq_va, record_va;
	uint32_t sq_signal_all;
	uint32_t srqn; /* source of receives (rq_log_entries is then 0xff); 0: none */
};

struct control_qp_reply {
	uint32_t qpn;
	uint32_t engine; /* whose doorbell page is the QP's, < UAR_PAGES; for its life */
};

/* A shared receive queue; its memory is like a QP's receive queue. */
struct control_srq {
	uint32_t pd;   /* of the local keys in its descriptors */
	uint32_t lkey; /* of the queue memory, in queue_pd */
	uint32_t log_entries;
	uint32_t stride;	     /* bytes, multiple of 16, 48..512 */
	uint64_t ring_va, record_va; /* struct srq_record, posted is 0 */
};

struct control_srq_limit {
	uint32_t srqn;
	uint32_t limit; /* EQE_SRQ_LIMIT when fewer descriptors are left, perhaps now; 0: never */
};

struct control_srq_attr {
	uint32_t entries;
	uint32_t limit;	    /* as armed; 0 after the event */
	uint32_t available; /* descriptors posted and not taken */
	uint32_t error;	    /* 1: failed, see EQE_SRQ_ERROR */
};

/* Attribute mask: the bits of ibv_qp_attr_mask. */
enum qp_attr_mask {
	QP_ATTR_STATE = 1 << 0,
	QP_ATTR_CUR_STATE = 1 << 1,
	QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2, /* requests EQE_SQ_DRAINED; no value */
	QP_ATTR_ACCESS = 1 << 3,
	QP_ATTR_PKEY_INDEX = 1 << 4,
	QP_ATTR_PORT = 1 << 5,
	QP_ATTR_QKEY = 1 << 6,
	QP_ATTR_AV = 1 << 7,
	QP_ATTR_PATH_MTU = 1 << 8,
	QP_ATTR_TIMEOUT = 1 << 9,
	QP_ATTR_RETRY_CNT = 1 << 10,
	QP_ATTR_RNR_RETRY = 1 << 11,
	QP_ATTR_RQ_PSN = 1 << 12,
	QP_ATTR_MAX_RD_ATOMIC = 1 << 13,
	QP_ATTR_ALT_PATH = 1 << 14,
	QP_ATTR_MIN_RNR_TIMER = 1 << 15,
	QP_ATTR_SQ_PSN = 1 << 16,
	QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	QP_ATTR_PATH_MIG_STATE = 1 << 18,
	QP_ATTR_DEST_QPN = 1 << 20,
};

/* As enum ibv_mig_state. */
enum control_mig_state { CONTROL_MIG_MIGRATED, CONTROL_MIG_REARM, CONTROL_MIG_ARMED };

/* An address vector: where a path leads. */
struct control_address {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t gid_index;
	uint8_t traffic_class, hop_limit;
	uint8_t sl; /* service level: the lower three bits are the 802.1p priority */
};

struct control_qp_attr {
	uint32_t qpn;
	uint32_t mask;
	uint32_t state; /* enum qp_state: RST 0, INIT 1, RTR 2, RTS 3, SQE 4, SQD 5, ERR 6 */
	uint32_t cur_state;
	uint32_t access;
	uint32_t qkey;
	uint32_t dest_qpn;
	uint32_t rq_psn, sq_psn;
	uint8_t path_mtu; /* 1..5 */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t pkey_index;
	struct control_address av;
	struct control_address alternate;
	uint8_t port;
	uint8_t alternate_timeout, alternate_pkey_index, alternate_port;
	uint8_t path_mig_state; /* enum control_mig_state */
	uint8_t reserved[3];
};

/* What a queue pair offers or has agreed to (host-abi/ece.h). */
struct control_ece {
	uint32_t qpn;
	uint32_t vendor_id;
	uint32_t options;
	uint32_t reserved;
};

struct control_multicast {
	uint32_t qpn;
	uint32_t reserved;
	uint8_t mgid[16]; /* ff00::/8, or v4-mapped 224.0.0.0/4 */
};

struct control_resolve {
	uint8_t dgid[16];
	uint32_t gid_index;
	uint32_t reserved;
};

struct control_resolve_reply {
	uint8_t mac[6];
	uint8_t pad[2];
};

static_assert(sizeof(struct control_header) == 16, "header");
#define REQUEST(NAME, name, body, reply, fds)                                                      \
	static_assert(sizeof(struct control_header) + (body) <= CONTROL_BYTES_MAX &&               \
			      sizeof(struct control_header) + (reply) <= CONTROL_BYTES_MAX,        \
		      "every message fits");
#include "host-abi/control_requests.def"

#endif
