/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_PARSE_FRAME_H
#define FUZZ_PARSE_FRAME_H
#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry. Returns enum wire_error to our own driver; aborts when something is not so. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
