/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MULTI_QUEUE_FIXTURE_H
#define MULTI_QUEUE_FIXTURE_H
/* A MultiQueue and nothing else of an engine. */
#include "test.h"
#include "world_eal.h"
#include "multi_queue.h"

static struct engine mq_engine;

TEST_GROUP(.setup = world_eal, .teardown = world_eal_end);

/* One at a time. */
static inline struct multi_queue *multi_queue_make(uint32_t size)
{
	mq_engine.settings.swpb_elements = size;
	mq_engine.settings.rpb_elements = size;
	mq_engine.settings.reb_elements = size;
	assert_int_equal(mq_create(&mq_engine), 0);
	return mq_engine.mq;
}

static inline void multi_queue_unmake(void)
{
	mq_destroy(&mq_engine);
}

#endif
