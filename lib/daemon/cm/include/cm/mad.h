/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_MAD_H
#define CM_MAD_H
/*
 * The messages of the connection manager as MADs on QP 1 (IBTA volume 1, chapters 12 and 13; annex
 * A11 for the IP addresses in the private data), converted to and from structures in host byte
 * order. Pure functions, any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CM_MAD_BYTES = 256,
	CM_QKEY = 0x80010000u, /* of QP 1 */
	CM_PRIVATE_MAX = 224,  /* RTU, DREP; each message has its own, cm_private_bytes() */
};

/* Attribute IDs. */
enum cm_type {
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
	CM_SIDR_REQ = 0x17,
	CM_SIDR_REP = 0x18,
	CM_LAP = 0x19,
	CM_APR = 0x1a,
};

/* Transport service types of a REQ. */
enum cm_service_type { CM_RC = 0, CM_UC = 1 };

/* Reasons of a REJ (12.6.7.2) that we send; others may be received. */
enum cm_reject_reason {
	CM_REJ_NO_QP = 1,
	CM_REJ_NO_RESOURCES = 3,
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_COMM_ID = 6,
	CM_REJ_INVALID_COMM_INSTANCE = 7,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_INVALID_TRANSPORT_SERVICE_TYPE = 9,
	CM_REJ_STALE_CONNECTION = 10,
	CM_REJ_INVALID_GID = 12,
	CM_REJ_INVALID_MTU = 26,
	CM_REJ_CONSUMER = 28,
	CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
};

/* Which message a REJ or an MRA answers. */
enum cm_about { CM_ABOUT_REQ = 0, CM_ABOUT_REP = 1, CM_ABOUT_OTHER = 2 };

/* One of the two paths of a REQ or LAP. */
struct cm_mad_path {
	uint16_t local_lid, remote_lid; /* RoCE: 0xffff */
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label; /* 20 bits */
	uint8_t rate;	     /* 6 bits, as enum ibv_rate's MAD encoding */
	uint8_t traffic_class, hop_limit, sl;
	bool subnet_local;
	uint8_t ack_timeout; /* 5 bits: 4.096 us * 2^n */
};

struct cm_req {
	uint64_t service_id, guid;
	uint32_t qkey, qpn, psn; /* 32, 24, 24 bits */
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_timeout, local_timeout; /* CM response timeouts, 5 bits */
	uint8_t service_type;		       /* enum cm_service_type, 2 bits */
	uint8_t extended_transport;	       /* 3 bits */
	bool flow_control, rdc_exists, srq;
	uint8_t retry_count, rnr_retry_count; /* 3 bits */
	uint16_t pkey;
	uint8_t mtu;		/* 1..5 */
	uint8_t max_cm_retries; /* 4 bits */
	uint32_t vendor_id;	/* 24 bits: of the sender; with cm_message.modifier */
	struct cm_mad_path path, alternate;
};

struct cm_rep {
	uint32_t qkey, qpn, eecn, psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t target_ack_delay;  /* 5 bits */
	uint8_t failover_accepted; /* 2 bits */
	bool flow_control, srq;
	uint8_t rnr_retry_count; /* 3 bits */
	uint8_t vendor_id[3];	 /* as in the REQ, the highest byte first */
	uint64_t guid;
};

struct cm_mra {
	uint8_t about;		 /* enum cm_about */
	uint8_t service_timeout; /* 5 bits */
};

struct cm_rej {
	uint8_t about;	    /* enum cm_about */
	uint8_t info_bytes; /* of info */
	uint16_t reason;    /* enum cm_reject_reason or another */
	uint8_t info[72];   /* additional reject information */
};

struct cm_dreq {
	uint32_t remote_qpn;
};

struct cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
};

struct cm_sidr_rep {
	uint32_t request_id;
	uint8_t status; /* 0: valid QPN; 1: service ID not supported; 2: rejected; 3: no QP; ... */
	uint8_t info_bytes;
	uint32_t qpn;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[72];
};

/* A LAP is only ever refused, by an APR: we know nothing of it but its communication IDs. */
enum cm_apr_status { CM_APR_LOADED = 0, CM_APR_INVALID_COMM_ID = 1, CM_APR_UNSUPPORTED = 2 };

struct cm_apr {
	uint8_t info_bytes; /* of info */
	uint8_t status;	    /* enum cm_apr_status or another */
	uint8_t info[72];
};

struct cm_message {
	uint16_t type; /* enum cm_type */
	uint16_t status;
	uint64_t transaction;
	uint32_t modifier; /* REQ, REP: options of the vendor; of others: any */
	uint32_t local_id,
		remote_id; /* communication IDs, the sender's first; 0 where it has none */
	union {
		struct cm_req req;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_rep rep;
		struct cm_dreq dreq;
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
		struct cm_apr apr;
	};
	uint8_t private_bytes; /* parsed: all that the message has room for */
	uint8_t private_data[CM_PRIVATE_MAX];
};

/* Room for private data in a message of that type (REQ 92, REJ 148, REP 196, ...); 0:
 * none, or no such type. */
unsigned int cm_private_bytes(uint16_t type);
/* The type's name in the standard ("REQ"); "?" for others. */
const char *cm_type_name(uint16_t type);

enum cm_malformed {
	CM_WELL_FORMED,
	CM_TOO_SHORT, /* less than 256 bytes */
	CM_NO_CM_MAD, /* version, management class or class version is another's */
	CM_NOT_SEND,  /* method */
	CM_UNKNOWN,   /* attribute ID */
	CM_BAD_FIELD, /* a value that the standard reserves: MTU, lengths of info, about */
	CM_MALFORMED_END
};

/*
 * Any bytes from the wire; bytes beyond 256 are ignored. *out is complete if CM_WELL_FORMED is
 * returned. Reserved fields are ignored. MADs with a reserved or unsupported transport
 * service type are well formed: that is a reason to reject.
 */
enum cm_malformed cm_mad_parse(const uint8_t *bytes, size_t n, struct cm_message *out);

/* m's values fit their fields, none is one that cm_mad_parse() calls CM_BAD_FIELD; private_bytes <=
 * cm_private_bytes(). Reserved fields are 0. */
void cm_mad_build(const struct cm_message *m, uint8_t mad[CM_MAD_BYTES]);

/*
 * The IP addresses of both ends at the head of the private data of a REQ or SIDR_REQ (annex A11.4).
 * IPv4 addresses are v4-mapped here.
 */
enum { CM_IP_BYTES = 36 };
struct cm_ip_addressing {
	uint8_t version; /* 4 or 6 */
	uint16_t source_port;
	uint8_t source[16], destination[16];
};
/* 0; -EPROTO: not major version 0, IP version 4 or 6. */
int cm_ip_parse(const uint8_t bytes[CM_IP_BYTES], struct cm_ip_addressing *out);
void cm_ip_build(const struct cm_ip_addressing *a, uint8_t bytes[CM_IP_BYTES]);

#endif
