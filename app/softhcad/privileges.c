/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities, user and core dumps (privileges.h), by the kernel's own interface. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/log.h"
#include "privileges.h"

#define CAP(name) (1ull << CAP_##name)

/*
 * By enum port_type: to open a port, and to run it. af_packet locks its rings in memory. Drivers of
 * PCI devices map registers, pin memory, read all of the configuration space and, some of them, use
 * the kernel's queues. libbpf loads programs and raises limits.
 */
static const uint64_t of_port[PORT_TYPE_COUNT] = {
	[PORT_AF_PACKET] = CAP(NET_RAW) | CAP(NET_ADMIN) | CAP(IPC_LOCK),
	[PORT_TAP] = CAP(NET_RAW) | CAP(NET_ADMIN),
	[PORT_AF_XDP] = CAP(NET_RAW) | CAP(NET_ADMIN) | CAP(BPF) | CAP(SYS_ADMIN) | CAP(IPC_LOCK) |
			CAP(SYS_RESOURCE),
	[PORT_PCI] =
		CAP(SYS_RAWIO) | CAP(SYS_ADMIN) | CAP(IPC_LOCK) | CAP(NET_RAW) | CAP(NET_ADMIN),
};

/* What a running daemon keeps if it had it. */
static uint64_t needed(const struct config *c)
{
	/* To attach a segment that the program itself may attach, and to see that the program is of
	 * our IPC namespace. */
	uint64_t mask = CAP(IPC_OWNER) | CAP(SYS_PTRACE);

	for (unsigned i = 0; i < c->hcas; i++)
		mask |= of_port[c->hca[i].port.type];
	return mask;
}

/* Root's alone: it owns most files anyway. memif sockets, folders of captures and files that
 * programs share may be other users'. */
static uint64_t of_root(void)
{
	return geteuid() == 0 ? CAP(DAC_OVERRIDE) : 0;
}

/* Keeps those of this thread's capabilities that are in `mask`, and makes them effective; none of
 * them is inherited. 0 or -errno. */
static int privileges_keep(uint64_t mask)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	for (unsigned i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(mask >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static uint64_t permitted(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	syscall(SYS_capget, &header, data);
	return data[1].permitted * (1ull << 32) | data[0].permitted;
}

/* In this network namespace: that of a user namespace may be another's. */
static bool may_use_raw_sockets(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno != EPERM;
	close(fd);
	return true;
}

/* A process that may not lock memory at will may lock some, up to a limit. */
static bool may_lock(uint64_t bytes)
{
	struct rlimit limit;

	return bytes && !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur >= bytes;
}

const char *privileges_lacking(const struct port_config *port)
{
	static const struct {
		uint64_t mask;
		const char *name;
	} names[] = {{CAP(NET_RAW), "CAP_NET_RAW"},	     {CAP(NET_ADMIN), "CAP_NET_ADMIN"},
		     {CAP(IPC_LOCK), "CAP_IPC_LOCK"},	     {CAP(BPF), "CAP_BPF"},
		     {CAP(SYS_ADMIN), "CAP_SYS_ADMIN"},	     {CAP(SYS_RAWIO), "CAP_SYS_RAWIO"},
		     {CAP(SYS_RESOURCE), "CAP_SYS_RESOURCE"}};
	static char text[128];
	uint64_t lacking = of_port[port->type] & ~permitted();
	size_t used = 0;

	if (of_port[port->type] & CAP(NET_RAW) && !may_use_raw_sockets())
		lacking |= CAP(NET_RAW);
	if (may_lock(port_locked_bytes(port)))
		lacking &= ~CAP(IPC_LOCK);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (lacking & names[i].mask)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? ", " : "", names[i].name);
	return lacking ? text : NULL;
}

static void limit_core_dumps(void)
{
	static const char private_memory[] = "0x11"; /* anonymous, and ELF headers */
	int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, private_memory, sizeof(private_memory) - 1) < 0)
		LOG(WARNING, "core dumps would hold clients' memory: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static bool changes_user(const struct config *c)
{
	return c->daemon.user[0] && geteuid() == 0;
}

/* For the start alone. */
static uint64_t of_start(const struct config *c)
{
	const bool group =
		c->daemon.socket_group[0] || strcmp(c->daemon.socket, PATHS_SYSTEM_SOCKET) == 0;
	const uint64_t chown = group || changes_user(c) ? CAP(CHOWN) : 0;

	return chown | (changes_user(c) ? CAP(SETUID) | CAP(SETGID) : 0);
}

void privileges_limit(const struct config *c)
{
	uint64_t mask = needed(c) | of_root() | of_start(c);
	int ret;

	limit_core_dumps();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		LOG(WARNING, "cannot set no_new_privs: %s", strerror(errno));
	/* A process that may not drop one could not gain it either: no_new_privs. */
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(mask >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	ret = privileges_keep(mask);
	if (ret)
		LOG(WARNING, "cannot drop capabilities: %s", strerror(-ret));
}

/* The folder of the system's control socket, in which the user is about to create files. */
static int give_socket_folder(const char *socket, const struct passwd *user)
{
	int fd, ret;

	if (strcmp(socket, PATHS_SYSTEM_SOCKET) != 0)
		return 0;
	ret = paths_make_folder_of(socket, user->pw_uid);
	if (ret)
		return ret;
	fd = open(PATHS_SYSTEM_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ret = fd < 0 || fchown(fd, user->pw_uid, user->pw_gid) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return ret;
}

/* libc changes all threads; only this one keeps its capabilities, which take effect again. The
 * process stays its own user's to debug: that user has nothing else. */
static int change_user(const struct passwd *user, uint64_t mask)
{
	int ret;

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || initgroups(user->pw_name, user->pw_gid) ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid))
		return -errno;
	ret = privileges_keep(mask);
	return ret || !prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) ? ret : -errno;
}

uid_t privileges_user(const struct config *c)
{
	const struct passwd *user = changes_user(c) ? getpwnam(c->daemon.user) : NULL;

	return user ? user->pw_uid : geteuid();
}

int privileges_become_user(const struct config *c, const struct runtime_folder *folder)
{
	const char *name = c->daemon.user;
	const struct passwd *user;
	int ret;

	if (!changes_user(c))
		return 0;
	user = getpwnam(name);
	ret = user ? runtime_folder_give(folder, user->pw_uid, user->pw_gid) : -ENOENT;
	if (!ret)
		ret = give_socket_folder(c->daemon.socket, user);
	if (!ret)
		ret = change_user(user, needed(c) | (c->daemon.socket_group[0] ? CAP(CHOWN) : 0));
	if (ret)
		LOG(ERR, "cannot become user %s: %s", name,
		    user ? strerror(-ret) : "there is no such user");
	else
		LOG(INFO, "user %s from here on", name);
	return ret;
}

void privileges_drop(const struct config *c)
{
	int ret = privileges_keep(needed(c) | of_root());

	if (ret)
		LOG(WARNING, "cannot drop capabilities: %s", strerror(-ret));
}
