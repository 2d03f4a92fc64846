/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of system calls, asked in a process of its own for what it forbids. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "test.h"
#include "sandbox.h"

enum { NOT_HERE = 77 };

static unsigned not_refused;

/* The call must fail with EPERM, which is what it does for root only because of the filter. */
static void refuse(const char *what, long returned)
{
	if (returned == -1 && errno == EPERM)
		return;
	fprintf(stderr, "not refused: %s (%ld, errno %d)\n", what, returned, errno);
	not_refused++;
}
#define REFUSED(call, ...) refuse(#call, syscall(SYS_##call, ##__VA_ARGS__))

static void ask_what_is_forbidden(void)
{
	static char *const nothing[] = {NULL};

	REFUSED(execve, "/bin/true", nothing, nothing);
	REFUSED(execveat, AT_FDCWD, "/bin/true", nothing, nothing, 0);
	REFUSED(clone, SIGCHLD, 0, 0, 0, 0);
	REFUSED(ptrace, 0, 0, 0, 0);
	REFUSED(process_vm_readv, getpid(), 0, 0, 0, 0, 0);
	REFUSED(process_vm_writev, getpid(), 0, 0, 0, 0, 0);
	REFUSED(pidfd_open, getpid(), 0);
	REFUSED(kill, 1, 0);
	REFUSED(mount, "none", "/", NULL, 0, NULL);
	REFUSED(umount2, "/", 0);
	REFUSED(chroot, "/");
	REFUSED(unshare, CLONE_NEWNS);
	REFUSED(setns, 0, 0);
	REFUSED(setuid, getuid());
	REFUSED(setresuid, 0, 0, 0);
	REFUSED(capset, NULL, NULL);
	REFUSED(bpf, 0, NULL, 0);
	REFUSED(perf_event_open, NULL, 0, 0, 0, 0);
	REFUSED(userfaultfd, 0);
	REFUSED(io_uring_setup, 1, NULL);
	REFUSED(keyctl, 0);
	REFUSED(init_module, NULL, 0, "");
	REFUSED(open_by_handle_at, 0, NULL, 0);
	REFUSED(renameat2, AT_FDCWD, "/tmp/a", AT_FDCWD, "/tmp/b", 0);
	REFUSED(mkdirat, AT_FDCWD, "/tmp/a", 0755);
	REFUSED(symlinkat, "/tmp/a", AT_FDCWD, "/tmp/b");
	REFUSED(fchmodat, AT_FDCWD, "/", 0755);
	REFUSED(fchownat, AT_FDCWD, "/", 0, 0, 0);
#ifdef SYS_chmod /* newer architectures have only the calls above */
	REFUSED(rename, "/tmp/a", "/tmp/b");
	REFUSED(symlink, "/tmp/a", "/tmp/b");
	REFUSED(chmod, "/", 0755);
	REFUSED(chown, "/", 0, 0);
#endif
	REFUSED(socket, AF_PACKET, SOCK_RAW, 0);
	REFUSED(mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REFUSED(mprotect, NULL, 4096, PROT_EXEC);
	REFUSED(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* NULL: a packet socket is refused in this thread, once `go` is set. */
static void *refused_here(void *go)
{
	while (!__atomic_load_n((bool *)go, __ATOMIC_ACQUIRE))
		sched_yield();
	return syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0) == -1 && errno == EPERM ? NULL : go;
}

/* Everything that a daemon does all the time is still possible. */
static bool works(void)
{
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC), pair[2];
	void *page;
	char byte;

	if (fd < 0 || read(fd, &byte, 1) != 1 || close(fd))
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ||
	    write(pair[0], "", 1) != 1)
		return false;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page != MAP_FAILED && munmap(page, 4096) == 0;
}

/* In a process of its own. Returns its exit code. */
static int in_sandbox(void)
{
	static bool go;
	void *earlier_end = &go, *later_end = &go;
	pthread_t earlier, later;
	int ret;

	if (pthread_create(&earlier, NULL, refused_here, &go))
		return 2;
	ret = sandbox_enter();
	if (ret) {
		fprintf(stderr, "no sandbox here: %s\n", strerror(-ret));
		return NOT_HERE;
	}
	ask_what_is_forbidden();
	if (not_refused || !works())
		return 1;
	if (pthread_create(&later, NULL, refused_here, &go))
		return 3;
	__atomic_store_n(&go, true, __ATOMIC_RELEASE);
	pthread_join(earlier, &earlier_end);
	pthread_join(later, &later_end);
	return earlier_end || later_end ? 4 : 0;
}

TEST(sandbox__forbids_what_no_daemon_needs)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(in_sandbox());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}
