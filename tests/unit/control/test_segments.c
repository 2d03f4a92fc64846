/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces that are System V segments: attached only for clients that may attach them, though the
 * daemon itself may attach all. */
#include <linux/capability.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include "hca_test.h"
#include "raw_client.h"

enum { BYTES = 5000, HUGE = 2 << 20, NOBODY = 65534 };

static int add(int fd, int id, uint32_t flags, uint32_t *piece)
{
	const struct control_segment in = {.id = (uint32_t)id, .flags = flags};
	struct control_number out = {0};
	int rc = raw_ask(fd, CONTROL_ADD_SEGMENT, &in, &out);

	*piece = out.number;
	return rc;
}

static bool locked; /* shmat() says that too much memory is; atomic */

void *shmat(int id, const void *at, int flags)
{
	if (__atomic_load_n(&locked, __ATOMIC_SEQ_CST)) {
		errno = EAGAIN;
		return (void *)-1;
	}
	return (void *)syscall(SYS_shmat, id, at, flags);
}

static unsigned long attached(int id)
{
	struct shmid_ds segment;

	assert_int_equal(shmctl(id, IPC_STAT, &segment), 0);
	return segment.shm_nattch;
}

/* A refused segment has not even been attached: with kernel.shm_rmid_forced, the last detach
 * destroys it. */
static void assert_untouched(int id)
{
	struct shmid_ds segment;

	assert_int_equal(shmctl(id, IPC_STAT, &segment), 0);
	assert_int_equal(segment.shm_atime, 0);
}

static int segment(int mode)
{
	int id = shmget(IPC_PRIVATE, BYTES, mode);

	assert_true(id >= 0);
	return id;
}

TEST(segment__is_attached_while_the_piece_lives)
{
	int id = segment(0600);
	uint32_t piece, lkey;
	struct raw r = raw_client(f.path);

	assert_int_equal(add(r.fd, id, 0, &piece), 0);
	assert_int_equal(attached(id), 1);
	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0); /* it stays until all have detached */
	lkey = raw_mr(r.fd, r.pd, piece, 8192, 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, lkey), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
	/* a client that goes, goes with its attachments */
	id = segment(0600);
	assert_int_equal(add(r.fd, id, PIECE_READ_ONLY, &piece), 0);
	close(r.fd);
	assert_true(fixture_wait_clients(&f, 0));
	for (int i = 0; attached(id) && i < 1000; i++)
		usleep(1000);
	assert_int_equal(attached(id), 0);
	shmctl(id, IPC_RMID, NULL);
}

/* A failure that the kernel reports as temporary is an answer: nobody waits for it to pass. */
CLIENT_TEST(segment__eagain_of_shmat_is_refused)
{
	int id = segment(0600);
	uint32_t piece;

	__atomic_store_n(&locked, true, __ATOMIC_SEQ_CST);
	assert_int_equal(add(r.fd, id, 0, &piece), -ENOMEM);
	__atomic_store_n(&locked, false, __ATOMIC_SEQ_CST);
	assert_int_equal(add(r.fd, id, 0, &piece), 0);
	shmctl(id, IPC_RMID, NULL);
}

/* As long as the pages that hold it, whatever was asked for. */
CLIENT_TEST(segment__in_huge_pages)
{
	static const uint64_t pages[] = {1, 1, 2, 3};
	uint32_t piece;

	for (unsigned int i = 0; i < 4; i++) {
		struct control_mr in = {.pd = r.pd, .access = 1, .count = 1};
		uint64_t bytes = (i ? pages[i] : 0) * HUGE + (i ? 0 : BYTES);
		int id = shmget(IPC_PRIVATE, bytes, 0600 | SHM_HUGETLB);
		uint32_t lkey, beyond;

		if (id < 0)
			skip(); /* none set aside, or not for us */
		assert_int_equal(add(r.fd, id, 0, &piece), 0);
		assert_int_equal(attached(id), 1);
		shmctl(id, IPC_RMID, NULL);
		in.run[0] = (struct control_run){piece, 0, 0, pages[i] * HUGE};
		assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
		in.run[0].bytes++;
		assert_int_equal(raw_reg_mr(r.fd, &in, &beyond), -EINVAL);
		assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, lkey), 0);
		assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
	}
}

CLIENT_TEST(wrong__refused)
{
	int id = segment(0600), gone = segment(0600);
	int large = shmget(IPC_PRIVATE, (1ull << 40) + BYTES, 0600 | SHM_NORESERVE);
	uint32_t piece;

	shmctl(gone, IPC_RMID, NULL);
	assert_int_equal(add(r.fd, id, 2, &piece), -EINVAL);
	assert_int_equal(add(r.fd, gone, 0, &piece), -EINVAL);
	assert_int_equal(add(r.fd, -1, 0, &piece), -EINVAL);
	assert_int_equal(add(r.fd, large, 0, &piece), -ENOSPC);
	assert_untouched(id);
	assert_untouched(large);
	shmctl(id, IPC_RMID, NULL);
	shmctl(large, IPC_RMID, NULL);
}

/* The answer to another user's program, in a child. */
static int asked_by(uid_t uid, gid_t gid, bool elsewhere, int id, uint32_t flags)
{
	struct control_hello_reply hello;
	uint32_t piece;
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (elsewhere && unshare(CLONE_NEWIPC))
			_exit(255);
		if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
			_exit(255);
		_exit(-add(raw_open(f.path, &hello), id, flags, &piece));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 255);
	return -WEXITSTATUS(status);
}

TEST(rights__are_the_clients)
{
	static const struct {
		int mode;
		uint32_t flags;
		gid_t gid;
		int rc;
	} row[] = {{0600, 0, NOBODY, -EACCES},
		   {0604, 0, NOBODY, -EACCES},
		   {0604, PIECE_READ_ONLY, NOBODY, 0},
		   {0606, 0, NOBODY, 0},
		   {0660, 0, NOBODY, -EACCES},
		   {0660, 0, 0, 0},
		   {0606, 0, 0, -EACCES}};
	int id;

	if (geteuid())
		skip(); /* there is no other user to become */
	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		id = segment(row[i].mode);
		assert_int_equal(asked_by(NOBODY, row[i].gid, false, id, row[i].flags), row[i].rc);
		if (row[i].rc)
			assert_untouched(id);
		shmctl(id, IPC_RMID, NULL);
	}
	id = segment(0666);
	assert_int_equal(asked_by(0, 0, false, id, 0), 0);
	assert_int_equal(asked_by(0, 0, true, id, 0), -EPERM);
	shmctl(id, IPC_RMID, NULL);
}

/* The superuser of a container that has been left no rights over others' segments. */
TEST(rights__of_a_superuser_without_them)
{
	struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	struct control_hello_reply hello;
	uint32_t piece;
	int status, pipes[2], id = -1;
	pid_t owner;

	if (geteuid())
		skip(); /* no superuser */
	assert_int_equal(pipe(pipes), 0);
	owner = fork();
	if (owner == 0) {
		status = setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY);
		id = status ? -1 : shmget(IPC_PRIVATE, BYTES, 0600);
		_exit(write(pipes[1], &id, sizeof(id)) != sizeof(id));
	}
	assert_int_equal(read(pipes[0], &id, sizeof(id)), sizeof(id));
	waitpid(owner, &status, 0);
	assert_int_equal(asked_by(0, 0, false, id, 0), 0);
	owner = fork();
	if (owner == 0)
		_exit(syscall(SYS_capset, &version, none)
			      ? 255
			      : -add(raw_open(f.path, &hello), id, 0, &piece));
	waitpid(owner, &status, 0);
	shmctl(id, IPC_RMID, NULL);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(WEXITSTATUS(status), EACCES);
}

static void *connect_as_nobody(void *fd)
{
	/* The system call itself: the C library would change all threads. */
	if (syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0)
		*(int *)fd = raw_connect(f.path);
	return NULL;
}

/* A user who connects and then executes a setuid program has a process with every capability, as a
 * thread of ours has here: it is the user who asks, all the same. */
TEST(rights__of_a_user_whose_process_has_more)
{
	int id = segment(0600), page = raw_memfd(sizeof(struct client_page), RAW_SEALS), fd = -1;
	struct control_hello_reply hello;
	uint32_t piece;
	pthread_t user;

	if (geteuid())
		skip(); /* no superuser */
	assert_int_equal(pthread_create(&user, NULL, connect_as_nobody, &fd), 0);
	pthread_join(user, NULL);
	assert_true(fd >= 0);
	assert_int_equal(raw_hello_with(fd, page, &hello), 0);
	assert_int_equal(add(fd, id, 0, &piece), -EACCES);
	shmctl(id, IPC_RMID, NULL);
	close(page);
	close(fd);
}

/* Numbers of processes are used again: of which namespace a client is, is judged as it connects. */
TEST(namespace__of_a_process_that_has_gone)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct control_hello_reply hello;
	int id = segment(0666), status, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int page = raw_memfd(sizeof(struct client_page), RAW_SEALS);
	struct clone_args again = {.exit_signal = SIGCHLD, .set_tid_size = 1};
	uint32_t piece;
	pid_t child = fork();
	int rc = -EPERM;
	long next;

	strcpy(addr.sun_path, f.path);
	if (child == 0)
		_exit(unshare(CLONE_NEWIPC) ||
		      connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
		      raw_hello_with(fd, page, &hello));
	assert_int_equal(waitpid(child, &status, 0), child);
	again.set_tid = (uintptr_t)&child;
	next = status ? -1 : syscall(SYS_clone3, &again, sizeof(again));
	if (next == 0) {
		pause();
		_exit(0);
	}
	if (next > 0) {
		rc = add(fd, id, 0, &piece);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	shmctl(id, IPC_RMID, NULL);
	close(page);
	close(fd);
	assert_int_equal(rc, -EPERM);
	if (next < 0)
		skip(); /* numbers cannot be chosen here */
}
