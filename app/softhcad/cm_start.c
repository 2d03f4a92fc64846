/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's connection manager: cm_thread.h between this daemon's devices and its control
 * socket. Control thread. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "cm-thread/cm_thread.h"
#include "cm_start.h"
#include "daemon.h"
#include "device_ops.h"

static int cm_source_to(void *ctx, const uint8_t dgid[16])
{
	const struct device *v = ctx;

	return port_source(v->port, dgid);
}

static bool cm_gives_credits(void *ctx, unsigned int device, uint32_t user, uint32_t qpn)
{
	const struct daemon *d = ctx;

	return control_gives_credits(d->control, device, user, qpn);
}

static void cm_peer_gives_no_credits(void *ctx, unsigned int device, uint32_t user, uint32_t qpn)
{
	const struct daemon *d = ctx;

	control_peer_gives_no_credits(d->control, device, user, qpn);
}

/* Connects to ourselves, which needs no socket path. */
static int connect_to_self(void *ctx)
{
	struct daemon *d = ctx;
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	rc = control_adopt(d->control, pair[0]);
	if (!rc)
		return pair[1];
	close(pair[0]);
	close(pair[1]);
	return rc;
}

/* The thread requests its QPs over the control socket, which we serve. It waits only for us and for
 * lcores, so it succeeds or fails however slow the machine is. */
static void serve_while_it_starts(struct daemon *d)
{
	while (cm_thread_state(d->cm) == CM_THREAD_STARTING) {
		pthread_mutex_lock(&d->lock);
		control_poll(d->control);
		pthread_mutex_unlock(&d->lock);
		control_wait(d->control, 1, false);
	}
}

static struct cm_thread_device cm_describe(struct device *v)
{
	struct cm_thread_device out = {.source = cm_source_to};

	device_describe(v, &out.control);
	return out;
}

int cm_add(struct daemon *d, unsigned i)
{
	const struct cm_thread_device device = cm_describe(&d->devices[i]);

	return cm_thread_add(d->cm, i, &device);
}

int cm_start(struct daemon *d)
{
	struct cm_thread_device devices[HCA_MAX];
	const struct cm_thread_config c = {.lock = &d->lock,
					   .devices = devices,
					   .device_count = d->device_count,
					   .shares = d->shares,
					   .connect = connect_to_self,
					   .gives_credits = cm_gives_credits,
					   .peer_gives_no_credits = cm_peer_gives_no_credits,
					   .ctx = d};
	struct cm_thread *cm;
	int rc;

	if (!d->config.daemon.cm)
		return 0;
	for (unsigned i = 0; i < d->device_count; i++)
		devices[i] = cm_describe(&d->devices[i]);
	rc = cm_thread_start(&c, &cm);
	if (!rc) {
		__atomic_store_n(&d->cm, cm, __ATOMIC_RELEASE); /* telemetry may already look */
		serve_while_it_starts(d);
		rc = cm_thread_state(d->cm) == CM_THREAD_RUNS ? 0 : -EIO;
	}
	if (rc)
		LOG(ERR, "cannot start the connection manager: %s", strerror(-rc));
	else
		LOG(INFO, "connection manager: QP 1 of %u HCA%s", d->device_count,
		    d->device_count == 1 ? "" : "s");
	return rc;
}

int cm_adopt(void *ctx, int fd)
{
	struct daemon *d = ctx;

	return d->cm ? cm_thread_adopt(d->cm, fd) : -EOPNOTSUPP;
}
