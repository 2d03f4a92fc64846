/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H
/*
 * The control socket of the daemon (protocol: host-abi/control.h). One session for each connection:
 * it owns all that its client made, refuses what is not the client's, and tears everything down
 * when the connection ends.
 *
 * Runs in the daemon's control thread, except control_thread_waits(); only signal handlers run in
 * the data path. It changes contexts and the TPT only through the CEU.
 */
#include <stdint.h>
#include <stdbool.h>
#include <sys/types.h>
#include "host-abi/control.h"

struct hca;
struct ceu;
struct control;
struct shares;

/* Callbacks for the port; ctx is the device's. */
struct control_port_ops {
	/* Fills *out, except gid_count. */
	void (*port)(void *ctx, struct control_port_reply *out);
	/* GID `index` as 16 bytes; 0, -ENOENT. The first -ENOENT ends the table. */
	int (*gid)(void *ctx, uint32_t index, uint8_t gid[16]);
	/* MAC of the next hop towards dgid. 0; -EAGAIN: being resolved, poll again; -EHOSTUNREACH;
	 * -EACCES: the peer is not admitted. Never blocks. */
	int (*resolve)(void *ctx, const uint8_t dgid[16], uint8_t mac[6]);
	/* Would resolve() ask the network? May be NULL: never. */
	bool (*would_ask)(void *ctx, const uint8_t dgid[16]);
	/* VLAN of sent frames: its TCI, 0: none. May be NULL. */
	uint16_t (*vlan)(void *ctx);
	/* A queue pair joins or leaves the multicast group mgid: called once for each. 0, -ENOMEM.
	 * Both may be NULL. */
	int (*join)(void *ctx, const uint8_t mgid[16]);
	void (*leave)(void *ctx, const uint8_t mgid[16]);
	/*
	 * Begins to copy the port's frames into that memory (host-abi/capture_ring.h), at most
	 * `snap` bytes of each, 0: all. 0; -EINVAL: too little; -EBUSY: captured as often as may
	 * be. May be NULL: -EOPNOTSUPP.
	 */
	int (*capture)(void *ctx, void *memory, uint64_t bytes, uint32_t snap);
	/* Ends it. Nothing uses the memory any more when it returns. */
	void (*capture_end)(void *ctx, const void *memory);
	/* May its modules be paused and its channels captured, as its configuration says now? May
	 * be NULL: no. */
	bool (*may_stop)(void *ctx);
	/* Writes the text of an attribute, as in sysfs, not NUL-terminated. Returns its length;
	 * -ENOENT: unknown. May be NULL: no attributes. */
	int (*attribute)(void *ctx, const char *name, char *text, unsigned int bytes);
};

/* One HCA that clients may open. Everything stays the caller's. */
struct control_device {
	char name[32];
	uint64_t guid;
	struct hca *hca;
	struct ceu *ceu;
	int kicks; /* an epoll set, in which clients' kicks are while they exist; -1: none */
	/* Wakes the lcores after events of the daemon; an eventfd, non-blocking, never passed to
	 * clients; -1: none. */
	int kick_eventfd;
	struct control_port_ops ops;
	void *ctx;
};

/* Who changes something. */
struct control_changer {
	uint32_t uid;
	int32_t pid;
};

/* Callbacks for the daemon's settings; both NULL: it has none. */
struct control_settings_ops {
	/* Fills *out, which is zeroed, with the index-th setting. 0, -ENOENT. */
	int (*read)(void *ctx, uint32_t index, struct control_setting *out);
	/* Changes one: "SECTION.KEY=VALUE". 0 with what has changed in text; -errno with the
	 * reason. */
	int (*change)(void *ctx, const struct control_changer *who, const char *assignment,
		      char *text, unsigned int bytes);
	/*
	 * Removes an HCA, which includes control_remove_device(). -EAGAIN: that takes a while, and
	 * goes on even if nobody asks again; `again`: it was asked before. 0 with what was done,
	 * -errno with the reason. May be NULL: none can be removed.
	 */
	int (*remove)(void *ctx, const struct control_changer *who, const char *hca, bool again,
		      char *text, unsigned int bytes);
	/* Adds one, with the lines "KEY=VALUE" of its section, which includes control_add_device().
	 * The same. *ticket is 0 in the first call; from then on the callee uses it to recognise
	 * the request. */
	int (*add)(void *ctx, const struct control_changer *who, const char *hca,
		   const char *settings, uint32_t *ticket, char *text, unsigned int bytes);
	/* Reads the configuration again, and adds and removes HCAs as it says. The same. */
	int (*reload)(void *ctx, const struct control_changer *who, uint32_t *ticket, char *text,
		      unsigned int bytes);
};

/* Who looks at something. */
struct control_viewer {
	uint32_t uid;
	bool may_change; /* may change the daemon, and so see everything */
};

/*
 * Writes the JSON text of a view (host-abi/control.h) for *who, at most `room` bytes. Its length;
 * -EAGAIN: not now, ask again; another -errno for the client. May wait for the lcores to end their
 * rounds, as other requests do, which is charged to the asker like the rest of its time; never for
 * any other thread.
 */
typedef int control_view_fn(void *ctx, const struct control_viewer *who, const char *name,
			    const char *parameters, char *text, unsigned int room);

struct control_config {
	const char *socket_path;  /* an old socket file there is replaced unless somebody listens on
				     it; NULL: no socket */
	unsigned int socket_mode; /* of the socket file; 0: 0666 */
	/* Within it a connection must open a device or a channel of the connection manager; 0:
	 * 30 s. */
	unsigned int hello_timeout_ms;
	const char *socket_group; /* of the socket file, by name; NULL or "": the process's own */
	unsigned int device_count;
	const struct control_device *devices; /* copied */
	/* What clients share. Its rows that depend on the devices get their totals here. NULL: the
	 * module creates a table. */
	struct shares *shares;
	/* Takes over a client's connection as a channel of the connection manager
	 * (host-abi/cm_channel.h), before the client gets its reply. 0: fd is the callee's;
	 * -EUSERS,
	 * -ENOMEM, another -errno for the client: it stays the caller's. NULL: there is no
	 * connection manager. */
	int (*cm_adopt)(void *ctx, int fd);
	void *cm_ctx;
	struct control_settings_ops settings;
	void *settings_ctx;
	control_view_fn *view; /* NULL: there are none */
	void *view_ctx;
	bool has_admin_group;
	uint32_t admin_gid; /* its members may change things, besides root and our own user */
};

/*
 * Listens and installs the SIGBUS handler. 0; -EINVAL (no device, path too long, no such group);
 * -EADDRINUSE (another daemon listens there); -ENOMEM; -errno of the socket calls (logged).
 */
int control_create(const struct control_config *config, struct control **out);

/* Disconnects all clients as if they had closed, removes the socket. NULL is allowed. */
void control_destroy(struct control *c);

/* Serves the requests that are there. Never waits: control_wait() does. Returns the number of
 * messages handled, or -errno. */
int control_poll(struct control *c);

/* Does a request wait for something else: the data path, a neighbour, another thread? */
bool control_has_waiting(const struct control *c);

/*
 * Waits until control_poll() has something to do, at most timeout_ms, and no longer than a
 * millisecond while a request is waiting for something else. It first polls for a moment
 * (base/look.h), within each user's part of that time, so that clients which send the next request
 * as soon as they are answered need not wait for a wake-up. `spare`: no lcore needs the caller's
 * CPU; else it sleeps at once, and the kernel may wake it elsewhere. Without the caller's lock.
 */
void control_wait(struct control *c, int timeout_ms, bool spare);

/* Makes a connected SOCK_SEQPACKET socket a new client: for socket activation and tests. 0; else fd
 * stays the caller's: -EUSERS; -EBUSY: its user is in debt (SHARE_held_up_ms); -ENOMEM; -errno. */
int control_adopt(struct control *c, int fd);

/*
 * Tells that a thread of this process waits in the kernel, since since_ns of the monotonic clock,
 * for a client that punches a hole into memory which the thread accesses. A signal makes the thread
 * find out which client as soon as it continues; control_poll() then charges its user. Ignored
 * while another thread is being asked. Any thread.
 */
void control_thread_waits(pid_t thread, uint64_t since_ns);

/* The same as control_config.hello_timeout_ms, from now on. */
void control_set_hello_timeout(struct control *c, unsigned int ms);

/* Notifies all clients that the link of a device's port has changed. */
void control_port_changed(struct control *c, unsigned int device, bool up);

/* The same of its GIDs (control_port_ops.gid). */
void control_gids_changed(struct control *c, unsigned int device);

/*
 * Adds a device, as control_create() does those of its configuration: clients may open it when this
 * returns. i: below HCA_MAX; unused, or removed before. 0; -EINVAL; -ENOMEM, with nothing left. Not
 * from within a callback, except from `add`.
 */
int control_add_device(struct control *c, unsigned int i, const struct control_device *config);

/*
 * Removes a device: ends its clients, and those that capture, trace or pause it, as if they had
 * disconnected. Neither clients nor this module use it when this returns; another may then be added
 * in its place. One device has to stay. Not from within a callback.
 */
void control_remove_device(struct control *c, unsigned int device);

/* control_port_ops.may_stop may have changed for some devices. Where modules may no longer be
 * paused, they run again and captures of channels end; time stands only for the other devices, and
 * only if a module is still paused. */
void control_debug_changed(struct control *c);

/* What `softhca clients` shows; the caller's copy. */
struct control_client_info {
	uint32_t id; /* counts connections, from 1 */
	uint32_t index;
	int32_t pid;
	uint32_t uid;
	char device[32]; /* "" before HELLO */
	uint32_t pds, pieces, mrs, cqs, srqs, qps;
	uint64_t bytes; /* of its pieces */
	uint64_t registered_bytes;
	uint64_t connected_s; /* since when */
	char captures[32];    /* the HCA that it captures from; "": none */
};
/* Fills up to n, the latest first; returns the number of clients. Leaves out the client that is
 * asking for the view in which they are shown. */
unsigned int control_clients(const struct control *c, struct control_client_info *info,
			     unsigned int n);

/* Is the client with that index at the device (struct qp.client) one of that user's? Under the
 * caller's lock. */
bool control_client_is_of(const struct control *c, unsigned int device, uint32_t index,
			  uint32_t uid);

/*
 * For a connection manager, about queue pair `qpn` of a client of that user. The first: does its
 * receive queue grant end-to-end credits? False also if it does not exist. The second: its peer's
 * grants none. Under the caller's lock.
 */
bool control_gives_credits(const struct control *c, unsigned int device, uint32_t uid,
			   uint32_t qpn);
void control_peer_gives_no_credits(struct control *c, unsigned int device, uint32_t uid,
				   uint32_t qpn);

#endif
