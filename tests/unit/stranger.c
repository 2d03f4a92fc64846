/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A FUSE server of a few answers (stranger.h), without libfuse: it serves until the one file is
 * open, then it does nothing more. It runs, with its mounts, in separate user and mount namespaces,
 * as an ordinary user would start it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <linux/fuse.h>
#include "host-abi/descriptor.h"
#include "lingering.h"
#include "stranger.h"

enum { FILE_NODE = 2, FILE_BYTES = 1 << 20, REQUEST_BYTES = 1 << 16, LOOK_MS = 20 };

/* ---- the server ---- */

/* One answer: with a body, or an error (negative). */
static void answer(int fd, const struct fuse_in_header *to, int error, const void *body,
		   uint32_t bytes)
{
	struct {
		struct fuse_out_header head;
		uint8_t body[256];
	} m = {.head = {.len = sizeof(m.head) + bytes, .error = error, .unique = to->unique}};

	if (bytes)
		memcpy(m.body, body, bytes);
	(void)!write(fd, &m, m.head.len);
}

static struct fuse_attr attributes(uint64_t node)
{
	bool is_file = node == FILE_NODE;

	return (struct fuse_attr){.ino = node,
				  .size = is_file ? FILE_BYTES : 0,
				  .mode = is_file ? S_IFREG | 0666 : S_IFDIR | 0755,
				  .nlink = 1,
				  .blksize = 4096};
}

static void serve(int fd, const struct fuse_in_header *in)
{
	const char *name = (const char *)(in + 1);

	switch (in->opcode) {
	case FUSE_INIT: {
		struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
					    .minor = FUSE_KERNEL_MINOR_VERSION,
					    .max_write = 4096};

		answer(fd, in, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = {.nodeid = FILE_NODE, .attr = attributes(FILE_NODE)};
		bool known = strcmp(name, "file") == 0;

		answer(fd, in, known ? 0 : -ENOENT, &out, known ? sizeof(out) : 0);
		break;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out out = {.attr = attributes(in->nodeid)};

		answer(fd, in, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN:
	case FUSE_OPENDIR: {
		struct fuse_open_out out = {.fh = 1};

		answer(fd, in, 0, &out, sizeof(out));
		break;
	}
	case FUSE_STATFS: {
		struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255}};

		answer(fd, in, 0, &out, sizeof(out));
		break;
	}
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(fd, in, -ENOSYS, NULL, 0);
	}
}

/* Ends when the test does, however it ends: then the other end of `test` is closed. */
static _Noreturn void run_server(int fd, int test, const volatile bool *silent)
{
	static uint8_t request[REQUEST_BYTES] __attribute__((aligned(8)));
	struct pollfd asked[2] = {{.fd = test, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	do {
		/* A request that was read could not even be given up: whoever waits could not be
		 * killed. */
		poll(asked, *silent ? 1 : 2, LOOK_MS);
		if (!*silent && asked[1].revents & POLLIN &&
		    read(fd, request, sizeof(request)) >= (ssize_t)sizeof(struct fuse_in_header))
			serve(fd, (const struct fuse_in_header *)request);
	} while (!asked[0].revents);
	_exit(0);
}

/* ---- its mounts ---- */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* This user and group become root there. */
static bool write_maps(unsigned int uid, unsigned int gid)
{
	char users[32], groups[32];

	snprintf(users, sizeof(users), "0 %u 1", uid);
	snprintf(groups, sizeof(groups), "0 %u 1", gid);
	return write_text("/proc/self/setgroups", "deny") &&
	       write_text("/proc/self/uid_map", users) && write_text("/proc/self/gid_map", groups);
}

/* Where an ordinary user may mount, over /tmp. */
static bool enter_namespaces(void)
{
	unsigned int uid = geteuid(), gid = getegid();

	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_maps(uid, gid) &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("stranger", "/tmp", "tmpfs", 0, NULL) == 0 && mkdir("/tmp/fuse", 0755) == 0 &&
	       mkdir("/tmp/empty", 0755) == 0 && mkdir("/tmp/merged", 0755) == 0;
}

static bool mount_fuse(int test, volatile bool *silent)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];
	pid_t server;

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mount("stranger", "/tmp/fuse", "fuse", MS_NOSUID | MS_NODEV, options) != 0)
		return false;
	server = fork();
	if (server == 0)
		run_server(fd, test, silent);
	close(fd);
	return server > 0;
}

/* The file, open, its server silent. -1: not here. */
static int open_file(enum stranger_kind kind, int test, volatile bool *silent)
{
	int fd;

	if (!enter_namespaces() || !mount_fuse(test, silent))
		return -1;
	if (kind == STRANGER_OVERLAY &&
	    mount("stranger", "/tmp/merged", "overlay", 0, "lowerdir=/tmp/fuse:/tmp/empty") != 0)
		return -1;
	fd = open(kind == STRANGER_OVERLAY ? "/tmp/merged/file" : "/tmp/fuse/file",
		  O_RDONLY | O_CLOEXEC);
	*silent = true;
	return fd;
}

/* Sends fd, or nothing if it is none. */
static void hand_over(int to, int fd)
{
	char byte = fd >= 0;
	struct iovec iov = {&byte, 1};

	descriptor_send(to, &iov, 1, fd, MSG_NOSIGNAL);
}

static int take_over(int from)
{
	char byte, room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = room,
			   .msg_controllen = sizeof(room)};
	int fd = -1;

	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void make_fuse(struct stranger *s, enum stranger_kind kind)
{
	volatile bool *silent =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pair[2];

	if (silent == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	s->server = fork();
	if (s->server == 0) {
		close(pair[0]);
		hand_over(pair[1], open_file(kind, pair[1], silent));
		_exit(0); /* which waits, as it closes the file */
	}
	close(pair[1]);
	s->fd = take_over(pair[0]);
	s->other = pair[0];
	munmap((void *)(uintptr_t)silent, 4096);
}

/* ---- the interface ---- */

static void make_pipe(struct stranger *s, bool full)
{
	static const char byte;
	int end[2];

	if (pipe2(end, O_CLOEXEC | O_NONBLOCK))
		return;
	while (full && write(end[1], &byte, 1) == 1)
		;
	s->fd = end[full];
	s->other = end[!full];
	fcntl(s->fd, F_SETFL, 0); /* now it waits */
}

bool stranger_make(struct stranger *s, enum stranger_kind kind)
{
	*s = (struct stranger){.fd = -1, .other = -1};
	switch (kind) {
	case STRANGER_PIPE_FULL:
	case STRANGER_PIPE_EMPTY:
		make_pipe(s, kind == STRANGER_PIPE_FULL);
		break;
	case STRANGER_SOCKET:
		s->fd = lingering(&s->other);
		break;
	case STRANGER_FUSE:
	case STRANGER_OVERLAY:
		make_fuse(s, kind);
		break;
	case STRANGER_KINDS:
		break;
	}
	if (s->fd >= 0)
		return true;
	stranger_end(s);
	return false;
}

bool stranger_keeps_waiting(struct stranger *s)
{
	const struct timespec while_waiting = {.tv_nsec = 200 * 1000 * 1000};
	struct stat st;

	s->asker = fork();
	if (s->asker == 0) {
		close(s->other);
		fstat(s->fd, &st);
		_exit(0);
	}
	nanosleep(&while_waiting, NULL);
	if (waitpid(s->asker, NULL, WNOHANG) == 0)
		return true;
	s->asker = 0;
	return false;
}

void stranger_end(struct stranger *s)
{
	if (s->other >= 0)
		close(s->other);
	if (s->server > 0)
		waitpid(s->server, NULL, 0);
	if (s->asker > 0)
		waitpid(s->asker, NULL, 0);
	if (s->fd >= 0)
		close(s->fd);
}
