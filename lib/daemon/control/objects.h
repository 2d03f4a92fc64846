/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_OBJECTS_H
#define CONTROL_OBJECTS_H
/* What the requests have in common: a client's objects, commands to the CEU, its HCA. */
#include "control_priv.h"

struct call;

/* Creates an object of `bytes` and adds it to the table and the client's list. NULL: *err is
 * -ENOMEM or -ENOSPC. */
void *object_make(struct client *client, enum object_kind kind, size_t bytes, int *err);
/* The same, under the table's reserved number; -EBUSY: taken. */
void *object_make_kept(struct client *client, enum object_kind kind, size_t bytes, int *err);
/* Removes it from both and frees it. */
void object_drop(struct object *o);
/* The object named by a control_number, to be destroyed: NULL with *err -ENOENT or -EBUSY. */
void *object_named(struct call *call, enum object_kind kind, int *err);
/* The client's object with that number, or NULL. */
void *object_find(struct client *client, enum object_kind kind, uint32_t number);
/* A command to the command unit of the client's HCA, with its mailbox of input (NULL: none) or of
 * output. 0, or -errno with nothing changed. */
int client_command(const struct client *client, uint16_t op, uint32_t modifier, const void *in,
		   uint32_t bytes);
int client_query(const struct client *client, uint16_t op, uint32_t modifier, void *out,
		 uint32_t bytes);
/* Writes the MPT entry of the key that is o's number (.key is filled in), or invalidates it. 0,
 * -errno with nothing changed. */
int mpt_write(const struct object *o, struct mpt_entry entry);
int mpt_invalidate(const struct object *o);
/*
 * The engine for the client's next QP or SRQ: the one with the fewest of them; of several, the first
 * from hca_client_engine() on. So the QPs of one client use all engines, and clients of one QP each,
 * too.
 */
unsigned int client_engine(const struct client *client);
/* One more QP or SRQ of the client is on the engine, whose doorbell page is polled from now on; or
 * one fewer. */
void client_engine_take(struct client *client, unsigned int engine);
void client_engine_give(struct client *client, unsigned int engine);
/* Places this mapped memory of the client on the node of hca_client_engine(). */
void client_bind(const struct client *client, void *at, uint64_t bytes);

/* The device of that name, or NULL. name is NUL-terminated. */
struct device *device_named(struct control *c, const char *name);
/* GID `index`, 0 or -ENOENT; and their number. */
int device_gid(const struct device *d, uint32_t index, uint8_t gid[16]);
uint32_t device_gid_count(const struct device *d);
/* A snapshot of its port. */
void device_port(const struct device *d, struct control_port_reply *out);

#endif
