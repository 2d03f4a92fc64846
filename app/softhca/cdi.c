/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softhca cdi: what a container needs to use the daemon, as a specification of the Container Device
 * Interface, which podman, CRI-O and containerd read from /etc/cdi.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <jansson.h>
#include "base/limits.h"
#include "libraries.h"
#include "softhca/softhca.h"
#include "view.h"

/* Paths in the container, whatever they are on the host. */
#define IN_SOCKETS   "/run/softhca"
#define IN_LIBRARIES "/opt/softhca"

/* Mounts folders, not files: a restarted daemon creates a new socket. */
static json_t *mount_of(const char *host, const char *container)
{
	return json_pack("{s:s, s:s, s:[s, s, s, s]}", "hostPath", host, "containerPath", container,
			 "options", "ro", "nosuid", "nodev", "rbind");
}

static json_t *edits_of(const char *sockets, const char *name, const char *libraries)
{
	return json_pack("{s:[s+, s, s], s:[o, o]}", "env", "SOFTHCA_SOCKET=" IN_SOCKETS "/", name,
			 "LD_LIBRARY_PATH=" IN_LIBRARIES,
			 "LD_PRELOAD=" IN_LIBRARIES "/" DROP_IN ":" IN_LIBRARIES "/" PRELOAD,
			 "mounts", mount_of(sockets, IN_SOCKETS),
			 mount_of(libraries, IN_LIBRARIES));
}

static json_t *device_of(const char *name, json_t *edits)
{
	return json_pack("{s:s, s:o}", "name", name, "containerEdits", edits);
}

/* One device for all HCAs, and one for each HCA that a running daemon names: a container with the
 * latter sees no other HCA. */
static json_t *devices_of(const char *socket, json_t *all)
{
	struct softhca_device_info list[HCA_MAX];
	json_t *devices = json_pack("[o]", device_of("all", json_deep_copy(all)));
	int n = softhca_device_list(socket, list, HCA_MAX);

	for (int i = 0; i < n && i < HCA_MAX; i++) {
		json_t *edits = json_deep_copy(all);

		json_array_append_new(json_object_get(edits, "env"),
				      json_sprintf("SOFTHCA_HCAS=%s", list[i].name));
		json_array_append_new(devices, device_of(list[i].name, edits));
	}
	json_decref(all);
	return devices;
}

/* Splits the absolute path of a socket. 0, or -1 after printing why a container may not have its
 * folder. */
static int cdi_split(char socket[PATH_MAX], const char **folder, const char **name)
{
	char *slash = strrchr(socket, '/');
	struct stat st;

	*slash = '\0';
	*folder = socket;
	*name = slash + 1;
	if (slash == socket || (stat(socket, &st) == 0 && (st.st_mode & S_IWOTH))) {
		failed(slash == socket ? "/" : socket,
		       "the container would see the whole folder; give the socket one of its own");
		return -1;
	}
	return 0;
}

int view_cdi(struct connection *c, const struct request *r)
{
	static struct libraries l;
	const char *folder, *name;
	char socket[PATH_MAX], path[PATH_MAX];
	json_t *spec;

	(void)c;
	if (socket_absolute(r->socket ? r->socket : getenv("SOFTHCA_SOCKET"), socket))
		return failed("the control socket", "its path is too long");
	strcpy(path, socket);
	if (cdi_split(socket, &folder, &name) || libraries_find(NULL, &l))
		return EXIT_CODE_FAILURE;
	if (strncmp(l.preload, l.folder, strlen(l.folder)))
		return failed(l.preload,
			      "not in the folder of " DROP_IN
			      "; install softhca, or name a folder of both in SOFTHCA_LIBDIR");
	spec = json_pack("{s:s, s:s, s:o}", "cdiVersion", "0.3.0", "kind", "softhca/hca", "devices",
			 devices_of(path, edits_of(folder, name, l.folder)));
	if (!spec)
		return failed("the specification", "out of memory, or a path that is not UTF-8");
	json_dumpf(spec, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(spec);
	return EXIT_CODE_OK;
}
