/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_PROGRAM_H
#define CM_PROGRAM_H
/* A program that has /dev/infiniband/rdma_cm open, with cm_stub.h's daemon: what the tests of it
 * share. */
#include <pthread.h>

#include "test.h"

#define DEVICE "/dev/infiniband/rdma_cm"

/* No test leaves a descriptor behind, here or there. */
int program_start(void **state);
int program_stop(void **state);

#undef TEST
#define TEST(name) TEST_WITH(name, program_start, program_stop)

/* With these flags beside O_RDWR and O_CLOEXEC. */
int open_device(int flags);
/* A case on its own descriptor, fd. */
#define TEST_DEVICE(name, flags)                                                                   \
	static void name##_on(int fd);                                                             \
	TEST(name)                                                                                 \
	{                                                                                          \
		int fd = open_device(flags);                                                       \
                                                                                                   \
		name##_on(fd);                                                                     \
		close(fd);                                                                         \
	}                                                                                          \
	static void name##_on(int fd)
/* Its result of poll() now. */
int polled(int fd);

/* 0 or -errno. Its uid is 0x77; id may be NULL. */
int create_id(int fd, uint32_t *id);
/* The daemon's answer to that. */
void answer_id(uint32_t id);
/* in: the bytes of the body that are written. */
int migrate_id(int fd, uint32_t id, int from, uint16_t in);
/* The next event: 0 or -errno. get_event(): its number, or -errno. */
struct rdma_ucm_event_resp;
int read_event(int fd, struct rdma_ucm_event_resp *out);
int get_event(int fd);

/* A thread in get_event(). */
struct waiter {
	pthread_t thread;
	int fd, got;
};

/* It is going to ask. */
void ask_waiter(struct waiter *w, int fd);
/* It has looked and found none, and is about to sleep, or does. */
void start_waiter(struct waiter *w, int fd);

#endif
