/* SPDX-License-Identifier: BSD-3-Clause */
/* What the configuration needs of the machine (environment.h): asked of the kernel, without opening
 * a device. */
#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <net/if.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "eal.h"
#include "environment.h"
#include "placement.h"
#include "privileges.h"

static unsigned missing;

__attribute__((format(printf, 2, 3))) static void say(const char *what, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "softhcad: %s: ", what);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

#define MISSING(what, ...)                                                                         \
	do {                                                                                       \
		say(what, __VA_ARGS__);                                                            \
		missing++;                                                                         \
	} while (0)

/* ---- ports ---- */

/* May a file be made there? */
static void environment_check_folder(const char *hca, const char *key, const char *path)
{
	char copy[PORT_PATH_BYTES];
	const char *folder;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	if (access(folder, W_OK | X_OK))
		MISSING(hca, "%s: cannot make files in %s: %s", key, folder, strerror(errno));
}

static void check_interface(const char *hca, const char *name)
{
	struct ifreq request = {0};
	int fd;

	if (!if_nametoindex(name)) {
		MISSING(hca, "there is no interface '%s' ('ip link' lists them)", name);
		return;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	memcpy(request.ifr_name, name, strnlen(name, sizeof(request.ifr_name) - 1));
	if (!ioctl(fd, SIOCGIFFLAGS, &request) && !(request.ifr_flags & IFF_UP))
		say(hca, "warning: interface '%s' is down ('ip link set %s up')", name, name);
	close(fd);
}

/* DPDK takes devices from these; others have to be bound to one of them. */
static bool serves_dpdk(const char *driver)
{
	static const char *const drivers[] = {"vfio-pci",  "uio_pci_generic", "igb_uio",
					      "mlx4_core", "mlx5_core",	      "mana"};

	for (unsigned i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (strcmp(driver, drivers[i]) == 0)
			return true;
	return false;
}

static void check_pci(const char *hca, const char *address)
{
	char path[256], driver[256];
	const char *name;
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", address);
	if (access(path, F_OK)) {
		MISSING(hca, "there is no PCI device '%s' ('lspci -D' lists them)", address);
		return;
	}
	strcat(path, "/driver");
	length = readlink(path, driver, sizeof(driver) - 1);
	driver[length < 0 ? 0 : length] = '\0';
	name = basename(driver);
	if (!serves_dpdk(name))
		MISSING(hca, "device %s has %s%s ('dpdk-devbind.py -b vfio-pci %s')", address,
			length < 0 ? "no driver" : "the kernel's driver ", length < 0 ? "" : name,
			address);
}

static void check_device(const struct hca_section *h)
{
	const struct port_config *p = &h->port;

	if (p->type == PORT_AF_PACKET || p->type == PORT_AF_XDP)
		check_interface(h->name, p->device);
	else if (p->type == PORT_PCI)
		check_pci(h->name, p->device);
	else if (p->type == PORT_MEMIF && p->memif_server)
		environment_check_folder(h->name, "device", p->device);
	if (p->backup[0])
		check_interface(h->name, p->backup);
	if (p->capture_path[0])
		environment_check_folder(h->name, "capture", p->capture_path);
}

static void check_rights(const struct hca_section *h)
{
	const char *lacks = privileges_lacking(&h->port);

	if (lacks)
		MISSING(h->name,
			"a port of this type needs %s, which this user lacks: start it as root, "
			"which gives up the rest, or as the service",
			lacks);
}

/* ---- the rest ---- */

static void check_hugepages(const struct config *c)
{
	uint32_t mib = c->daemon.hugepages_mib;

	if (mib == CONFIG_HUGEPAGES_AUTO || mib == CONFIG_HUGEPAGES_OFF || eal_hugepages_free(mib))
		return;
	MISSING("hugepages",
		"%u MiB are not free ('echo %u "
		">/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages')",
		mib, (mib + 1) / 2);
}

static void check_names(const struct daemon_config *d)
{
	if (d->user[0] && !getpwnam(d->user))
		MISSING("daemon.user", "there is no user '%s' ('adduser --system %s')", d->user,
			d->user);
	if (d->socket_group[0] && !getgrnam(d->socket_group))
		MISSING("daemon.socket_group", "there is no group '%s' ('addgroup --system %s')",
			d->socket_group, d->socket_group);
	if (d->admin_group[0] && !getgrnam(d->admin_group))
		MISSING("daemon.admin_group", "there is no group '%s' ('addgroup --system %s')",
			d->admin_group, d->admin_group);
}

unsigned environment_check(const struct config *c)
{
	static struct config copy; /* too large for a stack */
	struct config_cpus cpus;

	copy = *c;
	missing = placement_cpus(&copy, "/sys", &cpus) != 0; /* which says why */
	for (unsigned i = 0; i < c->hcas; i++) {
		check_device(&c->hca[i]);
		check_rights(&c->hca[i]);
	}
	check_hugepages(c);
	check_names(&c->daemon);
	return missing;
}
