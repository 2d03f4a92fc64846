/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CM_SERVICE_FIXTURE_H
#define TESTS_UNIT_CM_SERVICE_FIXTURE_H
/*
 * Two services (two daemons) in virtual time, each with two devices, and programs that write to
 * channels what librdmacm would. MADs pass between them when the test says so.
 *
 * Node n (1, 2): device d has the GIDs fe80::n:d, ::ffff:10.d.0.n, fd00:d::n. Devices reach what
 * has their d in these addresses, and groups.
 */
#include <arpa/inet.h>

#include "test.h"
#include <sys/socket.h>
#include "cm/service.h"
#include "host-abi/cm_channel.h"
#include "service/addresses.h"

enum { MS = 1000000, DEVICES = 2, GIDS = 3 };
enum { GID_LINK, GID_V4, GID_V6 };

struct node;
struct node_device {
	struct node *node;
	unsigned int index;
};

struct node {
	struct cm_service *s;
	unsigned int n;
	struct node_device devices[DEVICES];
	uint64_t next;	    /* when the service wants its turn */
	int resolve_again;  /* how often resolve answers -EAGAIN */
	int resolve_result; /* what it answers then */
	bool would_ask;
	bool down[DEVICES];  /* ports */
	uint32_t lacks;	     /* the first so many GIDs of its devices */
	uint32_t active_mtu; /* 1..5 */
	uint32_t speed_mbps;
	bool deaf; /* what is sent to it gets lost */
	/* How often what it sends now arrives, and by how much later; NULL: once, at once. */
	unsigned int (*copies)(uint64_t *late_ns);
	unsigned int sent;
	uint8_t last[CM_MAD_BYTES]; /* that was sent */
	uint32_t credits_of;	    /* the QP that gives credits; others give none */
	uint32_t at_will;	    /* the last QP whose peer was reported to give none */
};

/* A program's. */
struct channel {
	struct node *node;
	int fd;
	uint32_t flags, bytes, counts_for; /* of the last reply */
};

extern struct node node[2];
extern uint64_t now;

/* A case on fresh services. */
#undef TEST
#define TEST(name) TEST_WITH(name, services_setup, services_teardown)

int services_setup(void **state);
/* Channels that the test did not close are closed; nothing may be left then. */
int services_teardown(void **state);
void services_start(const struct cm_service_limits *limits);
/* Adds device d to a node again. */
void service_add(unsigned int n, unsigned int d);
/* Of fresh services: how much there is of something that programs share. */
void services_total(enum share row, uint64_t total);

/* Open descriptors of this process, after all deferred closes. */
unsigned int service_descriptors(void);

/* How much of it programs hold. */
uint64_t services_used(const struct node *n, enum share row);

/* A channel of node[n]. */
struct channel open_channel(unsigned int n);
/* The same of a program that uses only the HCA of that name. */
struct channel open_channel_on(unsigned int n, const char *hca);
int use_hca(struct channel *ch, const char *hca);
/* The same of a program of that user; skips the test where only root could. */
struct channel open_channel_as(unsigned int n, uid_t uid);
void close_channel(struct channel *ch);
/* Services do what is due; MADs are carried until none is on its way. */
void settle(void);
/* Time passes in the steps in which something is due. */
void pass(uint64_t ns);
/* One turn of a service. */
void turn(struct node *n);

/* Writes a command and reads the reply: its status. */
int command(struct channel *ch, uint32_t number, const void *body, size_t in, void *response,
	    size_t out);
/* A command that has that name and body: without a response; with one. */
#define TELL(ch, NAME, in) command(ch, RDMA_USER_CM_CMD_##NAME, &(in), sizeof(in), NULL, 0)
#define ASK(ch, NAME, in, out)                                                                     \
	command(ch, RDMA_USER_CM_CMD_##NAME, &(in), sizeof(in), &(out), sizeof(out))
/* With bytes behind the body. */
int command_with(struct channel *ch, uint32_t number, const void *body, size_t in,
		 const void *extra, size_t extra_bytes, void *response, size_t out);
/* Does a byte wait in the channel? Takes none. */
bool readable(const struct channel *ch);
/* GET_EVENT: status; takes the byte when the reply says so. */
int get_event(struct channel *ch, struct rdma_ucm_event_resp *e);
/* The next event is of that type, and there. */
struct rdma_ucm_event_resp expect_event(struct channel *ch, uint32_t type);
void expect_no_event(struct channel *ch);

/* ---- commands as librdmacm writes them: the status ---- */

int create_id(struct channel *ch, uint64_t uid, uint16_t ps, uint8_t qp_type, uint32_t *id);
int destroy_id(struct channel *ch, uint32_t id, uint32_t *events);
int bind_ip(struct channel *ch, uint32_t id, const char *address, uint16_t port);
int bind_any(struct channel *ch, uint32_t id, const union ucm_address *a);
int resolve_ip(struct channel *ch, uint32_t id, const char *source, const char *destination,
	       uint16_t port, uint32_t timeout_ms);
int resolve_route(struct channel *ch, uint32_t id);
int listen_id(struct channel *ch, uint32_t id, uint32_t backlog);
/* What connect_id() offers and accept_id() answers; none at first. */
extern struct rdma_ucm_ece offered_ece, answered_ece;
int connect_id(struct channel *ch, uint32_t id, uint32_t qpn, const char *data);
int accept_id(struct channel *ch, uint32_t id, uint64_t uid, uint32_t qpn, const char *data);
/* The accept of the active side: "my QP is ready". */
int confirm_id(struct channel *ch, uint32_t id);
int reject_id(struct channel *ch, uint32_t id, uint8_t reason, const char *data);
int disconnect_id(struct channel *ch, uint32_t id);
int init_qp_attr(struct channel *ch, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *attr);
int query_route(struct channel *ch, uint32_t id, struct rdma_ucm_query_route_resp *out);
int query_addr(struct channel *ch, uint32_t id, uint32_t option,
	       struct rdma_ucm_query_addr_resp *out);
int set_option(struct channel *ch, uint32_t id, uint32_t level, uint32_t name, const void *value,
	       uint32_t bytes);

/* The address as text and a port; AF_IB if it begins with "gid:" (port space TCP). */
union ucm_address address_of(const char *text, uint16_t port);
void gid_of(unsigned int n, unsigned int device, unsigned int index, uint8_t gid[16]);

/* ---- whole exchanges ---- */

struct end {
	struct channel ch;
	uint32_t id;
};
/* A listener at an address, uid 100. */
struct end listener(unsigned int n, uint16_t ps, const char *address, uint16_t port);
/* An identifier with a route to there, uid 200. */
struct end caller(unsigned int n, uint16_t ps, const char *destination, uint16_t port);
/* The same with GIDs, port space IB and a type of queue pair: a listener on node 1 at any GID,
 * an identifier on node 0 with a route there; port 7174. */
struct end ib_listener(uint8_t qp_type);
struct end ib_caller(uint8_t qp_type);
/* The request that came to a listener: its identifier. */
uint32_t requested(struct end *l, struct rdma_ucm_event_resp *e);
/* A listener at any address (node 1), a caller (node 0), and its request there, without data and
 * not answered yet: the request's identifier. */
uint32_t ask_ends(struct end *l, struct end *c);
/* Established: the server's new identifier has uid 300. */
uint32_t join_ends(struct end *l, struct end *c);

#endif
