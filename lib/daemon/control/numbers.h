/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_NUMBERS_H
#define CONTROL_NUMBERS_H
#include <stdbool.h>
#include <stdint.h>

struct client;

/*
 * Objects: everything a client can create has a number and is in a table (of the device, or of the
 * client for pieces) and in its client's list of that kind. `users` counts its dependants; it is
 * destroyed only when that is 0.
 */
enum object_kind {
	OBJECT_PD,
	OBJECT_PIECE,
	OBJECT_MR,
	OBJECT_MW, /* its number is one of the MRs' table */
	OBJECT_CQ,
	OBJECT_SRQ,
	OBJECT_QP,
	OBJECT_KINDS
};

struct object {
	uint32_t number;
	uint32_t users;
	uint8_t kind; /* enum object_kind */
	struct client *client;
	struct object *next, *prev; /* in the client's list */
};

/* Numbers: the low bits are the index in slot[], the rest are random and differ from the last use.
 */
struct table {
	struct object **slot;
	uint32_t *last;	    /* the slot's last number */
	uint32_t count;	    /* slots; power of two */
	uint32_t max;	    /* most slots; power of two */
	uint32_t cursor;    /* start of the search for a free slot */
	uint32_t reserved;  /* a number: table_add() uses neither it nor its place; 0: none */
	uint8_t bits;	    /* of a number */
	uint8_t tag_bits;   /* low bits of it that its owner may change: keys */
	uint8_t place_bits; /* of the slot's index, above the tag */
};

/* 0, -ENOMEM. */
int table_create(struct table *t, uint32_t count, uint32_t max, unsigned int bits,
		 unsigned int tag_bits);
void table_destroy(struct table *t);
/* Adds o to the table under a new number. 0, -ENOSPC, -ENOMEM. A table smaller than its max grows.
 * No number is 0 or, in a table without tags, all ones. */
int table_add(struct table *t, struct object *o);
/* Adds o under the reserved number. 0; -EBUSY: taken; -ENOSPC: none is reserved. */
int table_add_reserved(struct table *t, struct object *o);
void table_remove(struct table *t, struct object *o);
/* The object of that number if it is this client's, or NULL. */
struct object *table_find(const struct table *t, uint32_t number, const struct client *client);
/* A random number from the kernel. */
uint32_t control_random(void);

#endif
