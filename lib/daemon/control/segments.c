/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pieces that are segments of System V shared memory. A segment has no descriptor, and an ordinary
 * user cannot open the file behind it, but any process with its number may attach it: so does the
 * daemon, all of it, as long as the piece exists. Other processes see one more attachment.
 *
 * The number is untrusted, and shmat() checks the daemon's rights: so the client's own are checked
 * here, by the rules of ipcperms(). Numbers are valid in one IPC namespace only: a client in
 * another has none that we could attach. Control thread.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "objects.h"
#include "pieces.h"
#include "segments.h"
#include "session.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
enum { GROUPS_MAX = 64, HUGE_BYTES_MAX = 1 << 30 };

static bool same_namespace(pid_t pid, const char *kind)
{
	char path[64], own[64];
	struct stat theirs, ours;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	snprintf(own, sizeof(own), "/proc/self/ns/%s", kind);
	return pid > 0 && stat(path, &theirs) == 0 && stat(own, &ours) == 0 &&
	       theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

bool segments_same_namespace(pid_t pid)
{
	return same_namespace(pid, "ipc");
}

bool segments_all_allowed(pid_t pid)
{
	unsigned long long effective = 0;
	char line[128];
	FILE *file;

	snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	file = same_namespace(pid, "user") ? fopen(line, "re") : NULL;
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file) && sscanf(line, "CapEff: %llx", &effective) != 1)
		;
	fclose(file);
	return effective >> CAP_IPC_OWNER & 1;
}

static bool segment_in_group(int socket, gid_t a, gid_t b)
{
	gid_t groups[GROUPS_MAX];
	struct ucred who = {.gid = (gid_t)-1};
	socklen_t bytes = sizeof(who), n = sizeof(groups);

	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
	if (who.gid == a || who.gid == b)
		return true;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &n))
		return false;
	for (size_t i = 0; i < n / sizeof(groups[0]); i++)
		if (groups[i] == a || groups[i] == b)
			return true;
	return false;
}

/* May the client attach it? */
static bool segment_allowed(const struct client *client, const struct ipc_perm *segment,
			    bool read_only)
{
	const unsigned int wanted = read_only ? 4 : 6;
	unsigned int granted = segment->mode;

	if (client->ipc_owner)
		return true;
	if (client->uid == segment->uid || client->uid == segment->cuid)
		granted >>= 6;
	else if (segment_in_group(client->fd, segment->gid, segment->cgid))
		granted >>= 3;
	return (granted & wanted) == wanted;
}

/* The kernel does not report the segment's page size, but refuses to treat a part of a page
 * differently from the rest. Where it does not refuse, that splits the mapping: so this tries it on
 * a second attachment. 0: unknown. */
static uint64_t page_bytes_of(int id)
{
	uint64_t page = 1u << V2P_LOG_PAGE_MIN;
	void *probe = shmat(id, NULL, SHM_RDONLY);
	int rc;

	if (probe == (void *)-1)
		return 0;
	while ((rc = madvise(probe, page, MADV_DONTDUMP)) && errno == EINVAL &&
	       page < HUGE_BYTES_MAX)
		page *= 2;
	shmdt(probe);
	return rc ? 0 : page;
}

/* May the client have the segment that the number names now, in pages of this size? Sets *bytes. 0;
 * -EACCES; -ENOSPC: no room for it; -errno of shmctl(). */
static int segment_check(struct client *client, const struct control_segment *in,
			 uint64_t page_bytes, uint64_t *bytes)
{
	struct shmid_ds segment;

	if (shmctl((int)in->id, IPC_STAT, &segment))
		return -errno;
	if (!segment_allowed(client, &segment.shm_perm, in->flags & PIECE_READ_ONLY))
		return -EACCES;
	*bytes = ((uint64_t)segment.shm_segsz + page_bytes - 1) & ~(page_bytes - 1);
	if (*bytes <= CONTROL_PIECE_BYTES_MAX &&
	    share_fits(&client->shares, SHARE_mapped_bytes, *bytes, true))
		return 0;
	CLIENT_LOG(client, WARNING, "segment refused: more than there is room for");
	return -ENOSPC;
}

/* Attaches a whole segment. 0; -EPERM: of another namespace; as segment_check() and
 * mapping_charge(); -errno of shmat(). */
static int attach(struct client *client, const struct control_segment *in, void **at,
		  uint64_t *bytes, uint64_t *page_bytes)
{
	int rc;

	if (!client->same_ipc || !segments_same_namespace(client->pid))
		return -EPERM;
	if (mapping_deferred(client))
		return -EAGAIN;
	/* Attaching is not without effect: with kernel.shm_rmid_forced the last to detach destroys
	 * a segment. So we do not even attach a stranger's. */
	rc = segment_check(client, in, 1, bytes);
	if (rc)
		return rc;
	*at = shmat((int)in->id, NULL, in->flags & PIECE_READ_ONLY ? SHM_RDONLY : 0);
	if (*at == (void *)-1)
		return mapping_errno();
	/* From here on the number belongs to no other segment; until here it might have changed. */
	*page_bytes = page_bytes_of((int)in->id);
	rc = *page_bytes ? segment_check(client, in, *page_bytes, bytes) : -ENOSPC;
	if (!rc)
		rc = mapping_charge(client, *bytes);
	if (rc)
		shmdt(*at);
	return rc;
}

/* May we write it as our own user? Otherwise the kernel reports all of its pages as present. */
static bool segment_is_ours(int id)
{
	struct shmid_ds segment;

	return shmctl(id, IPC_STAT, &segment) == 0 && segment.shm_perm.uid == geteuid();
}

int run_add_segment(struct call *call)
{
	const struct control_segment *in = call->body;
	struct client *client = call->client;
	uint64_t bytes = 0, page_bytes = 0;
	const struct wait wait = wait_begin();
	struct piece *piece;
	const char *why;
	void *at = NULL;
	int rc;

	if (in->flags & ~(uint32_t)PIECE_READ_ONLY)
		return -EINVAL;
	rc = attach(client, in, &at, &bytes, &page_bytes);
	client_waited(client, wait_ns(&wait));
	if (rc)
		return rc;
	piece = object_make(client, OBJECT_PIECE, sizeof(*piece), &rc);
	if (!piece) {
		shmdt(at);
		mapping_uncharge(client, bytes);
		return rc;
	}
	piece->read_only = in->flags & PIECE_READ_ONLY;
	rc = memory_adopt(at, bytes, page_bytes,
			  piece->read_only ? PROT_READ : PROT_READ | PROT_WRITE, &piece->mapping,
			  &why);
	if (rc) {
		mapping_uncharge(client, bytes);
		object_drop(&piece->object);
		return rc;
	}
	piece->mapping.reports_residence = segment_is_ours((int)in->id);
	memory_set_owner(&piece->mapping, client->uid);
	client_bind(client, at, bytes);
	*(struct control_number *)call->reply =
		(struct control_number){.number = piece->object.number};
	return 0;
}
