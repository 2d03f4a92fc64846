/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps memif's sockets open; see memif_listener.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>

#include "eth_args.h"
#include "memif_gate.h"
#include "memif_listener.h"

enum { NOBODYS_ID = UINT16_MAX + 1 }; /* no port can have it */

static char kept[PORTS_MAX][PORT_DEVICE_BYTES];
static unsigned int count;

static __attribute__((destructor)) void remove_sockets(void)
{
	while (count)
		unlink(kept[--count]);
}

bool memif_listener_kept(const char *path)
{
	unsigned int i = 0;

	while (i < count && strcmp(kept[i], path) != 0)
		i++;
	return i < count;
}

int memif_listener_keep(const char *path)
{
	char name[PORT_DEVICE_BYTES], args[ETH_ARGS_BYTES];
	int error;

	if (memif_listener_kept(path))
		return 0;
	if (count == PORTS_MAX)
		return -ENOSPC;
	snprintf(name, sizeof(name), "net_memif_listener%u", count);
	snprintf(args, sizeof(args), "role=server,id=%u,socket=%s,socket-abstract=no", NOBODYS_ID,
		 path);
	error = rte_eal_hotplug_add("vdev", name, args);
	if (!error)
		snprintf(kept[count++], PORT_DEVICE_BYTES, "%s", path);
	return error;
}

/* Replaces libc's for the whole process. Drivers on EAL's interrupt thread call it only for memif's
 * messages, which have one part. */
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
						       int flags)
{
	static __typeof__(&sendmsg) found; /* by any thread; all find the same */
	__typeof__(found) next = __atomic_load_n(&found, __ATOMIC_RELAXED);
	ssize_t sent;

	if (!next) {
		next = (__typeof__(next))dlsym(RTLD_NEXT, "sendmsg");
		__atomic_store_n(&found, next, __ATOMIC_RELAXED);
	}
	sent = next(fd, message, flags);
	if (sent < 0 && (errno == EPIPE || errno == ECONNRESET) && memif_gate_in_interrupt())
		return (ssize_t)message->msg_iov[0].iov_len;
	return sent;
}
