/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSTEM_SHARES_H
#define SYSTEM_SHARES_H
/* What the attacks of shares.def's rows are made of. An attack takes all that it can get and returns how much that was. */
#include "../../unit/control/raw_client.h"
#include "host-abi/cm_channel.h"

enum { PAGE = 4096, CLIENTS = 8, FDS = 8192, UD = 2 };

/* The daemon's socket. */
extern const char *path;

/* ---- requests by hand ---- */

/* A connection that still holds after a question. -1: refused. */
int connect_once(void);
/* An open device; -1: refused. */
int open_once(struct control_hello_reply *hello);
/* Asks for a neighbour that does not exist; does not wait for the answer. */
void ask_for(int fd, uint32_t number);
uint32_t datagram_qp(const struct raw *r);
int attach(const struct raw *r, uint32_t qpn, uint32_t n);

unsigned int attack_connect(void), attack_requests(void), attack_linger(void), attack_log(void),
	attack_locks(void), attack_resolve(void), attack_map(void), attack_register(void),
	attack_scatter(void), attack_objects(void), attack_attach(void);
/* What comes back by itself is taken again. */
void again_requests(void), again_locks(void), again_log(void), again_resolve(void);

/* ---- commands of the connection manager ---- */

/* A channel; -1: refused. */
int channel(void);
/* Status of the command, or -EPIPE. */
int command(int fd, uint32_t number, const void *body, size_t in, void *response, size_t out);
int create_id(int fd, uint32_t *id);
/* Resolves our own address and the route to it. */
int resolve(int fd, uint32_t id, uint16_t port);

unsigned int attack_cm_commands(void), attack_cm_channels(void), attack_cm_ids(void),
	attack_cm_ports(void), attack_cm_events(void), attack_cm_requests(void);
void again_cm_commands(void);

/* ---- traffic, through the library ---- */

/* Opens a pair of queue pairs, from left to right. False: refused. */
bool traffic_begin(void);
/* WRITEs, for so long. Returns the bytes; 0: it broke. */
uint64_t traffic(uint64_t ns);

unsigned int attack_silence(void), attack_holes(void);
void again_silence(void), again_holes(void);

uint64_t now_ns(void);

#endif
