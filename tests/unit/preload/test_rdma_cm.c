/* SPDX-License-Identifier: BSD-3-Clause */
/* /dev/infiniband/rdma_cm as programs see it, with a stub in the daemon's place (cm_stub.h). Linked
 * with the library that is preloaded elsewhere: libc's functions here are the program's. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "../descriptors.h"
#include "cm_program.h"
#include "cm_stub.h"
#include "host-abi/cm_channel.h"

static int listen_id(int fd)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_listen body;
	} m = {{.cmd = RDMA_USER_CM_CMD_LISTEN, .in = sizeof(m.body)}, {.id = 7, .backlog = 3}};

	return write(fd, &m, sizeof(m)) == sizeof(m) ? 0 : -errno;
}

/* ---- the file ---- */

TEST(device__is_a_character_device)
{
	struct stat st;
	struct dirent *e;
	DIR *dir = opendir("/dev/infiniband");
	bool listed = false;

	assert_int_equal(stat(DEVICE, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access(DEVICE, R_OK | W_OK), 0);
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL)
		listed |= strcmp(e->d_name, "rdma_cm") == 0;
	closedir(dir);
	assert_true(listed);
}

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

TEST(open__each_way)
{
	int folder = open("/dev/infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(folder >= 0);
	answer_id(9);
	for (int way = 0; way < 11; way++) {
		int fd = way == 0   ? open(DEVICE, O_RDWR)
			 : way == 1 ? open64(DEVICE, O_RDWR)
			 : way == 2 ? openat(AT_FDCWD, DEVICE, O_RDWR)
			 : way == 3 ? openat64(-1, DEVICE, O_RDWR)
			 : way == 4 ? openat(folder, "rdma_cm", O_RDWR)
			 : way == 5 ? openat64(folder, "rdma_cm", O_RDWR)
			 : way == 6 ? __open_2(DEVICE, O_RDWR)
			 : way == 7 ? __open64_2(DEVICE, O_RDWR)
			 : way == 8 ? __openat_2(folder, "rdma_cm", O_RDWR)
			 : way == 9 ? __openat64_2(folder, DEVICE, O_RDWR)
				    : open("/dev//infiniband/./rdma_cm", O_RDWR);
		uint32_t id = 0;

		assert_true(fd >= 0);
		assert_int_equal(create_id(fd, &id), 0);
		assert_int_equal(id, 9);
		close(fd);
	}
	close(folder);
}

TEST(open__flags)
{
	static const int wanted[] = {0, O_CLOEXEC, O_NONBLOCK, O_CLOEXEC | O_NONBLOCK};

	for (int i = 0; i < 4; i++) {
		int fd = open(DEVICE, O_RDWR | wanted[i]);

		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFD), wanted[i] & O_CLOEXEC ? FD_CLOEXEC : 0);
		assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, wanted[i] & O_NONBLOCK);
		close(fd);
	}
}

/* With these it is a file like others. */
TEST(open__not_to_be_used)
{
	int fd = open(DEVICE, O_PATH | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(create_id(fd, NULL), -EBADF);
	close(fd);
	assert_int_equal(open(DEVICE, O_RDWR | O_CREAT | O_EXCL, 0600), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(open(DEVICE, O_RDONLY | O_DIRECTORY), -1);
	assert_int_equal(errno, ENOTDIR);
}

static void expect_no_open(int error)
{
	errno = 0;
	assert_int_equal(open(DEVICE, O_RDWR), -1);
	assert_int_equal(errno, error);
}

TEST(open__refused)
{
	char path[100];

	stub_set_open(-EOPNOTSUPP);
	expect_no_open(ENODEV);
	stub_set_open(-EPROTO);
	expect_no_open(ENODEV);
	stub_set_open(-EUSERS);
	expect_no_open(EMFILE);
	stub_set_open(-ENOMEM);
	expect_no_open(ENOMEM);
	stub_kill(); /* no listener at the socket */
	expect_no_open(ENODEV);
	snprintf(path, sizeof(path), "%s/s", stub_folder());
	unlink(path);
	expect_no_open(ENOENT);
}

#define EXPECT_DEVICE(call, st)                                                                    \
	do {                                                                                       \
		memset(&(st), 0, sizeof(st));                                                      \
		assert_int_equal(call, 0);                                                         \
		assert_int_equal((st).st_mode, S_IFCHR | 0666);                                    \
		assert_int_equal((st).st_rdev, by_path.st_rdev);                                   \
	} while (0)

int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);

TEST(stat__of_an_open_one)
{
	int fd = open_device(0), plain = open("/dev/zero", O_RDWR | O_CLOEXEC);
	struct stat by_path, st;
	struct stat64 st64;
	struct statx stx = {.stx_mask = 0};

	assert_int_equal(stat(DEVICE, &by_path), 0);
	EXPECT_DEVICE(fstat(fd, &st), st);
	EXPECT_DEVICE(fstat64(fd, &st64), st64);
	EXPECT_DEVICE(fstatat(fd, "", &st, AT_EMPTY_PATH), st);
	EXPECT_DEVICE(fstatat64(fd, "", &st64, AT_EMPTY_PATH), st64);
	EXPECT_DEVICE(__fxstat(1, fd, &st), st);
	EXPECT_DEVICE(__fxstat64(1, fd, &st64), st64);
	EXPECT_DEVICE(__fxstatat(1, fd, "", &st, AT_EMPTY_PATH), st);
	EXPECT_DEVICE(__fxstatat64(1, fd, "", &st64, AT_EMPTY_PATH), st64);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), 0);
	assert_int_equal(stx.stx_mode, S_IFCHR | 0666);
	assert_int_equal(makedev(stx.stx_rdev_major, stx.stx_rdev_minor), by_path.st_rdev);
	assert_int_equal(fstat(plain, &st), 0);
	assert_int_equal(st.st_rdev, makedev(1, 5));
	/* a path that is not empty means the path */
	assert_int_equal(fstatat(fd, "/dev/zero", &st, AT_EMPTY_PATH), 0);
	assert_int_equal(st.st_rdev, makedev(1, 5));
	close(plain);
	close(fd);
	assert_int_equal(fstat(fd, &st), -1);
	assert_int_equal(errno, EBADF);
}

/* ---- commands ---- */

TEST_DEVICE(command__and_its_response, 0)
{
	struct stub_command c;
	uint32_t id = 0;

	answer_id(0x1234);
	errno = 77;
	assert_int_equal(create_id(fd, &id), 0);
	assert_int_equal(errno, 77);
	assert_int_equal(id, 0x1234);
	c = stub_last();
	assert_int_equal(c.cmd, RDMA_USER_CM_CMD_CREATE_ID);
	assert_int_equal(c.in, sizeof(struct rdma_ucm_create_id));
	assert_int_equal(c.bytes, c.in);
	assert_int_equal(((struct rdma_ucm_create_id *)c.body)->uid, 0x77);
	assert_int_equal(listen_id(fd), 0);
	assert_int_equal(stub_last().cmd, RDMA_USER_CM_CMD_LISTEN);
	stub_set_answer(STUB_ANSWER, -EADDRINUSE, 0, NULL, 0);
	assert_int_equal(listen_id(fd), -EADDRINUSE);
}

/* Where the pointer to the response lies differs from command to command. */
TEST_DEVICE(command__each_response, 0)
{
	static const struct {
		uint32_t cmd;
		size_t bytes, at;
	} row[] = {
#define ROW(name, type)                                                                            \
	{RDMA_USER_CM_CMD_##name, sizeof(struct rdma_ucm_##type),                                  \
	 offsetof(struct rdma_ucm_##type, response)}
		ROW(CREATE_ID, create_id),
		ROW(DESTROY_ID, destroy_id),
		ROW(QUERY_ROUTE, query),
		ROW(INIT_QP_ATTR, init_qp_attr),
		ROW(JOIN_IP_MCAST, join_ip_mcast),
		ROW(LEAVE_MCAST, destroy_id),
		ROW(QUERY, query),
		ROW(JOIN_MCAST, join_mcast),
	};
	uint8_t bytes[1024], out[1024];

	memset(bytes, 0xa5, sizeof(bytes));
	stub_set_answer(STUB_ANSWER, 0, 0, bytes, CM_CHANNEL_BYTES_MAX - 16);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct {
			struct rdma_ucm_cmd_hdr header;
			uint8_t body[512];
		} m = {{.cmd = row[i].cmd, .in = (uint16_t)row[i].bytes, .out = 1000}, {0}};
		uint64_t to = (uintptr_t)out;

		memcpy(m.body + row[i].at, &to, sizeof(to));
		memset(out, 0, sizeof(out));
		assert_int_equal(write(fd, &m, 8 + row[i].bytes), 8 + row[i].bytes);
		assert_memory_equal(out, bytes, 1000);
		assert_int_equal(out[1000], 0);
		/* none wanted: none is written */
		m.header.out = 0;
		memset(out, 0, sizeof(out));
		assert_int_equal(write(fd, &m, 8 + row[i].bytes), 8 + row[i].bytes);
		assert_int_equal(out[0], 0);
		/* nowhere to write it */
		m.header.out = 8;
		memset(m.body + row[i].at, 0, sizeof(to));
		assert_int_equal(write(fd, &m, 8 + row[i].bytes), -1);
		assert_int_equal(errno, EFAULT);
		/* too short to have a pointer */
		m.header.in = (uint16_t)(row[i].at + 7);
		assert_int_equal(write(fd, &m, 8 + row[i].bytes), -1);
		assert_int_equal(errno, EINVAL);
	}
}

static void expect_error(int fd, const void *bytes, size_t n, int error)
{
	errno = 0;
	assert_int_equal(write(fd, bytes, n), -1);
	assert_int_equal(errno, error);
}

TEST_DEVICE(command__malformed, 0)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		uint8_t body[2000];
	} m = {{.cmd = RDMA_USER_CM_CMD_LISTEN, .in = 8}, {0}};
	volatile uintptr_t nowhere = 0; /* the compiler need not know */
	char byte;

	expect_error(fd, &m, 0, EINVAL);
	expect_error(fd, &m, 7, EINVAL);
	expect_error(fd, &m, 15, EINVAL);
	expect_error(fd, (void *)nowhere, 16, EFAULT);
	m.header.in = CM_CHANNEL_BYTES_MAX - 7;
	expect_error(fd, &m, sizeof(m), EINVAL);
	m.header.in = CM_CHANNEL_BYTES_MAX - 8;
	assert_int_equal(write(fd, &m, sizeof(m)), sizeof(m));
	assert_int_equal(stub_last().bytes, CM_CHANNEL_BYTES_MAX - 8);
	/* bytes behind the command are ignored */
	m.header.in = 8;
	assert_int_equal(write(fd, &m, 100), 100);
	assert_int_equal(stub_last().bytes, 8);
	/* the daemon refuses anything that is no command */
	m.header.cmd = 23;
	stub_set_answer(STUB_ANSWER, -EINVAL, 0, NULL, 0);
	expect_error(fd, &m, 100, EINVAL);
	expect_error(fd, &m, 100, EINVAL);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, EINVAL);
}

TEST_DEVICE(command__answered_with_nonsense, 0)
{
	static const enum stub_way ways[] = {STUB_NO_REPLY, STUB_SHORT_REPLY, STUB_LONG_REPLY,
					     STUB_LYING_REPLY, STUB_ODD_STATUS};
	uint32_t id;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		stub_set_answer(ways[i], 0, 0, NULL, 0);
		assert_int_equal(create_id(fd, &id), -ENODEV);
	}
	answer_id(3);
	assert_int_equal(create_id(fd, &id), 0);
}

TEST_DEVICE(option__goes_along, 0)
{
	struct rdma_ucm_set_option in = {.id = 7, .level = 1, .optname = 1};
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_set_option body;
	} m = {{.cmd = RDMA_USER_CM_CMD_SET_OPTION, .in = sizeof(in)}, in};
	uint8_t option[1024];
	struct stub_command c;

	for (size_t i = 0; i < sizeof(option); i++)
		option[i] = (uint8_t)i;
	m.body.optval = (uintptr_t)option;
	for (uint32_t n = 0; n <= 1024 - 8 - sizeof(in); n += 8) {
		m.body.optlen = n;
		assert_int_equal(write(fd, &m, sizeof(m)), sizeof(m));
		c = stub_last();
		assert_int_equal(c.in, sizeof(in));
		assert_int_equal(c.bytes, sizeof(in) + n);
		assert_memory_equal(c.body, &m.body, sizeof(in));
		assert_memory_equal(c.body + sizeof(in), option, n);
	}
	m.body.optlen = 1024 - 8 - sizeof(in) + 1;
	expect_error(fd, &m, sizeof(m), EINVAL);
	m.body.optlen = UINT32_MAX;
	expect_error(fd, &m, sizeof(m), EINVAL);
	m.header.in = sizeof(in) - 1;
	m.body.optlen = 4;
	expect_error(fd, &m, sizeof(m), EINVAL);
}

TEST(migrate__in_two_steps)
{
	const uint64_t ticket = 0x1122334455667788;
	const uint16_t whole = sizeof(struct rdma_ucm_migrate_id);
	int first = open_device(0), second = open_device(0);
	int plain = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stub_command c;

	stub_set_answer(STUB_ANSWER, 0, CM_CHANNEL_QUIET_THERE, &ticket, sizeof(ticket));
	stub_event(0, 5);
	assert_int_equal(polled(first), POLLIN);
	assert_int_equal(migrate_id(second, 42, first, whole), 0);
	c = stub_last_of(CM_COMMAND_RELEASE_ID);
	assert_int_equal(c.cmd, CM_COMMAND_RELEASE_ID);
	assert_int_equal(c.channel, 0);
	assert_int_equal(((struct rdma_ucm_destroy_id *)c.body)->id, 42);
	assert_int_equal(c.out, sizeof(ticket));
	c = stub_last();
	assert_int_equal(c.cmd, RDMA_USER_CM_CMD_MIGRATE_ID);
	assert_int_equal(c.channel, 1);
	assert_int_equal(((struct rdma_ucm_migrate_id *)c.body)->id, 0x55667788);
	assert_int_equal(((struct rdma_ucm_migrate_id *)c.body)->fd, 0x11223344);
	/* its events have disappeared with it */
	assert_int_equal(polled(first), 0);
	assert_int_equal(migrate_id(second, 42, plain, whole), -EINVAL);
	assert_int_equal(migrate_id(second, 42, first, whole - 1), -EINVAL);
	assert_int_equal(migrate_id(second, 42, -1, whole), -EBADF);
	stub_set_answer(STUB_ANSWER, -ENOENT, 0, NULL, 0);
	assert_int_equal(migrate_id(second, 42, first, whole), -ENOENT);
	assert_int_equal(stub_last().cmd, CM_COMMAND_RELEASE_ID);
	close(plain);
	close(first);
	assert_int_equal(migrate_id(second, 42, first, whole), -EBADF);
	close(second);
}

/* ---- events ---- */

TEST_DEVICE(event__none_without_waiting, O_NONBLOCK)
{
	assert_int_equal(polled(fd), 0);
	assert_int_equal(get_event(fd), -EAGAIN);
	stub_event(0, 4);
	stub_event(0, 5);
	assert_int_equal(polled(fd), POLLIN);
	assert_int_equal(get_event(fd), 4);
	assert_int_equal(polled(fd), POLLIN);
	assert_int_equal(get_event(fd), 5);
	assert_int_equal(polled(fd), 0);
	assert_int_equal(get_event(fd), -EAGAIN);
	/* set later, too */
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	stub_event(0, 6);
	assert_int_equal(get_event(fd), 6);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(get_event(fd), -EAGAIN);
}

TEST_DEVICE(event__waited_for, 0)
{
	struct waiter w;

	start_waiter(&w, fd);
	answer_id(1);
	assert_int_equal(listen_id(fd), 0); /* others' commands are executed during this */
	stub_event(0, 9);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.got, 9);
	assert_int_equal(polled(fd), 0);
}

/* Two events at once wake two threads, though there is but one byte. */
TEST_DEVICE(event__two_threads, 0)
{
	struct waiter w[3];
	int sum = 0;

	for (int i = 0; i < 3; i++)
		start_waiter(&w[i], fd);
	stub_event(0, 1);
	stub_event(0, 10);
	stub_event(0, 100);
	for (int i = 0; i < 3; i++) {
		pthread_join(w[i].thread, NULL);
		sum += w[i].got;
	}
	assert_int_equal(sum, 111);
	assert_int_equal(polled(fd), 0);
}

static void on_signal(int number)
{
}

/* Signals that do not end its call. */
static void disturb(struct waiter *w)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGUSR1, &act, NULL);
	for (int i = 0; i < 3; i++) {
		pthread_kill(w->thread, SIGUSR1);
		usleep(10000);
	}
}

/* A signal that does; one that comes before it sleeps has no effect, so until it has ended. */
static void interrupt(struct waiter *w)
{
	struct sigaction act = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &act, NULL);
	do {
		pthread_kill(w->thread, SIGUSR1);
		usleep(10000);
	} while (pthread_tryjoin_np(w->thread, NULL));
}

TEST_DEVICE(event__signals_interrupt_or_not, 0)
{
	struct waiter w;

	start_waiter(&w, fd);
	disturb(&w);
	stub_event(0, 8);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.got, 8);
	start_waiter(&w, fd);
	interrupt(&w);
	assert_int_equal(w.got, -EINTR);
}

/* As with the kernel's device, where a write() that has begun holds the file. */
TEST(event__closed_by_another_thread)
{
	static const struct {
		int flags, got;
	} rows[] = {{0, -EINTR}, {O_NONBLOCK, -EAGAIN}};

	for (unsigned int i = 0; i < 2; i++) {
		int fd = open_device(rows[i].flags), high = fcntl(fd, F_DUPFD, 200);
		unsigned int empty = stub_empty();
		struct waiter w;

		close(fd); /* so that the daemon, in this process, does not reuse the number */
		fd = high;
		stub_set_paused(true);
		ask_waiter(&w, fd);
		assert_true(stub_wait_request());
		close(fd);
		stub_set_paused(false);
		assert_true(stub_wait_empty(empty + 1));
		if (rows[i].got == -EINTR)
			interrupt(&w);
		else
			pthread_join(w.thread, NULL);
		assert_int_equal(w.got, rows[i].got);
	}
}

TEST_DEVICE(event__cancelled_while_waiting, 0)
{
	unsigned int before = open_descriptors();
	struct waiter w;
	void *how;

	for (int i = 0; i < 3; i++) {
		start_waiter(&w, fd);
		pthread_cancel(w.thread);
		pthread_join(w.thread, &how);
		assert_ptr_equal(how, PTHREAD_CANCELED);
		assert_int_equal(open_descriptors(), before);
	}
	start_waiter(&w, fd);
	stub_event(0, 3);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.got, 3);
	/* and in poll(), where it is since: interrupted, not blocking */
	start_waiter(&w, fd);
	interrupt(&w);
	assert_int_equal(w.got, -EINTR);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(get_event(fd), -EAGAIN);
}

TEST_DEVICE(event__room_for_commands_is_waited_for, O_NONBLOCK)
{
	int status, got = 0;
	pid_t child[40];

	/* more commands than the socket holds, and none is read */
	answer_id(1);
	stub_set_paused(true);
	for (int i = 0; i < 40; i++) {
		child[i] = fork();
		if (child[i] == 0)
			_exit(create_id(fd, NULL) ? 1 : 0);
	}
	usleep(100000);
	assert_int_equal(waitpid(-1, &status, WNOHANG), 0);
	stub_set_paused(false);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		got += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	assert_int_equal(got, 40);
}

/* ---- the daemon goes ---- */

TEST_DEVICE(gone__a_waiting_thread_is_notified, 0)
{
	struct waiter w;

	start_waiter(&w, fd);
	stub_kill();
	pthread_join(w.thread, NULL);
	assert_int_equal(w.got, -ENODEV);
	assert_int_equal(get_event(fd), -ENODEV);
	assert_int_equal(create_id(fd, NULL), -ENODEV);
}

/* A poller is woken once, gets the event, and then sleeps; with epoll too. */
TEST_DEVICE(gone__no_program_spins, O_NONBLOCK)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	struct stat st;

	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	stub_kill();
	assert_true(polled(fd) & (POLLIN | POLLHUP));
	assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
	assert_int_equal(get_event(fd), -ENODEV);
	assert_int_equal(polled(fd), 0);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	/* it is what it was, but dead */
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(get_event(fd), -ENODEV);
	assert_int_equal(create_id(fd, NULL), -ENODEV);
	close(set);
}

TEST_DEVICE(gone__during_a_command, 0)
{
	stub_set_answer(STUB_DIE, 0, 0, NULL, 0);
	assert_int_equal(create_id(fd, NULL), -ENODEV);
	assert_int_equal(create_id(fd, NULL), -ENODEV);
	assert_int_equal(get_event(fd), -ENODEV);
}

/* With an event's byte unread. */
TEST_DEVICE(gone__with_an_event_waiting, O_NONBLOCK)
{
	stub_event(0, 5);
	stub_kill();
	assert_int_equal(get_event(fd), -ENODEV);
	assert_int_equal(polled(fd), 0);
}

/* ---- descriptors ---- */

TEST(number__used_for_something_else)
{
	int fd = open_device(0), other, pair[2];
	struct stat st;
	char text[4] = "";

	close(fd);
	other = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(other, fd);
	assert_int_equal(write(other, "abc", 3), 3);
	assert_int_equal(fstat(other, &st), 0);
	assert_int_equal(st.st_rdev, makedev(1, 3));
	close(other);
	fd = open_device(0);
	close(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pair[0], fd);
	assert_int_equal(write(pair[0], "abc", 4), 4);
	assert_int_equal(read(pair[1], text, 4), 4);
	assert_string_equal(text, "abc");
	close(pair[0]);
	close(pair[1]);
}

TEST(copies__are_channels)
{
	int fd = open_device(0), copy, high = 900;

	answer_id(5);
	for (int way = 0; way < 6; way++) {
		struct stat st;
		uint32_t id = 0;

		copy = way == 0	  ? dup(fd)
		       : way == 1 ? dup2(fd, high)
		       : way == 2 ? dup3(fd, high, O_CLOEXEC)
		       : way == 3 ? fcntl(fd, F_DUPFD, high)
		       : way == 4 ? fcntl(fd, F_DUPFD_CLOEXEC, high)
				  : fcntl64(fd, F_DUPFD_CLOEXEC, high);
		assert_true(copy >= 0 && copy != fd);
		assert_int_equal(fstat(copy, &st), 0);
		assert_true(S_ISCHR(st.st_mode));
		close(fd);
		assert_int_equal(create_id(copy, &id), 0);
		assert_int_equal(id, 5);
		assert_int_equal(dup2(copy, fd), fd);
		close(copy);
	}
	assert_int_equal(dup(-1), -1);
	/* over a channel */
	copy = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(dup2(copy, fd), fd);
	assert_int_equal(write(fd, "abc", 3), 3);
	close(copy);
	close(fd);
}

TEST(fork__shares_the_channel)
{
	int fd = open_device(0), status;
	pid_t child;

	answer_id(6);
	stub_event(0, 4);
	child = fork();
	if (child == 0) {
		uint32_t id = 0;

		_exit(create_id(fd, &id) == 0 && id == 6 && get_event(fd) == 4 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(polled(fd), 0);
	assert_int_equal(create_id(fd, NULL), 0);
	/* it lives as long as one has it */
	child = fork();
	if (child == 0) {
		uint32_t id = 0;

		usleep(50000);
		_exit(create_id(fd, &id) == 0 && id == 6 ? 0 : 1);
	}
	close(fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}
