/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRACE_TEXT_H
#define TRACE_TEXT_H
/* What passes the channels of the pipeline, in words. */
#include "host-abi/trace_record.h"

enum { TRACE_TEXT_BYTES = 96 };

/* "RC RDMA WRITE Only, PSN 5, 64 bytes, WQE at 128" */
void trace_text(const struct trace_record *r, char text[TRACE_TEXT_BYTES]);

#endif
