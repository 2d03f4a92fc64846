/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_PARSE_FRAME_H
#define FUZZ_PARSE_FRAME_H
#include <stddef.h>
#include <stdint.h>

#include "wire/error.h"

/* Parses one frame and checks what came out; aborts when something is not so. */
enum wire_error fuzz_parse_frame(const uint8_t *data, size_t size);

#endif
