/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_CAPTURE_ELEMENT_H
#define HOST_ABI_CAPTURE_ELEMENT_H
/*
 * An element of a channel as a capture shows it (LINKTYPE_WIRESHARK_UPPER_PDU): the tags that name
 * its dissector, its description (capture_element.def), then the headers of its packet, if it has
 * one, but never payload. `captured` of the record counts what is there, `original` the whole
 * packet.
 */
#include <assert.h>
#include <stdint.h>

enum { CAPTURE_ELEMENT_TAG_BYTES = 16 };

#define CAPTURE_ELEMENT_NONE8  0xffu
#define CAPTURE_ELEMENT_NONE32 0xffffffffu

/* Wireshark's: tag 12, a dissector's name, of 8 bytes; tag 0, the end. */
#define CAPTURE_ELEMENT_TAGS "\0\14\0\10softhca\0\0\0\0\0"
static_assert(sizeof(CAPTURE_ELEMENT_TAGS) == CAPTURE_ELEMENT_TAG_BYTES + 1,
	      "a string ends with 0");

struct capture_element {
	uint8_t tags[CAPTURE_ELEMENT_TAG_BYTES];
#define NUMBER(name, bits, base, label, what) uint##bits##_t name;
#define TEXT(name, bytes, label, what)	      char name[bytes];
#include "host-abi/capture_element.def"
};

#define NUMBER(name, bits, base, label, what) +(bits) / 8
#define TEXT(name, bytes, label, what)	      +(bytes)
static_assert(sizeof(struct capture_element) == CAPTURE_ELEMENT_TAG_BYTES
#include "host-abi/capture_element.def"
	      ,
	      "no gaps");

enum capture_layer {
#define LAYER(NAME, name) CAPTURE_LAYER_##NAME,
#include "host-abi/capture_element.def"
};

#endif
