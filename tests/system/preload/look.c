/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads /sys/class/infiniband in every way that libc offers; run by run.sh below `softhca run`.
 * Exit code 0: all of them saw the device. Argument: its name.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static unsigned int failed;
static char state[PATH_MAX], folder[PATH_MAX], version[PATH_MAX];

static void expect(const char *what, bool holds)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	failed++;
}

/* Reads it to the end, closes it. */
static bool says(int fd, const char *text)
{
	char got[64];
	ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof(got));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text) && memcmp(got, text, n) == 0;
}

static bool stream_says(FILE *f, const char *text)
{
	char got[64];
	bool right = f && fgets(got, sizeof(got), f) && strcmp(got, text) == 0 &&
		     !fgets(got, sizeof(got), f);

	if (f)
		fclose(f);
	return right;
}

static void look_opening(void)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY);

	expect("open", says(open(state, O_RDONLY), "4: ACTIVE\n"));
	expect("open64", says(open64(state, O_RDONLY | O_CLOEXEC), "4: ACTIVE\n"));
	expect("openat", says(openat(AT_FDCWD, state, O_RDONLY), "4: ACTIVE\n"));
	expect("openat64", says(openat64(dir, state, O_RDONLY), "4: ACTIVE\n"));
	expect("openat below", says(openat(dir, "ports/1/state", O_RDONLY), "4: ACTIVE\n"));
	expect("fopen", stream_says(fopen(state, "r"), "4: ACTIVE\n"));
	expect("fopen64", stream_says(fopen64(state, "re"), "4: ACTIVE\n"));
	expect("open static", says(open(version, O_RDONLY), "softhca\n"));
	expect("fopen static", stream_says(fopen(version, "r"), "softhca\n"));
	expect("open to write", open(state, O_WRONLY) < 0 && errno == EACCES);
	expect("fopen to write", !fopen(state, "w") && errno == EACCES);
	close(dir);
}

/* Reading from the beginning refreshes the text, closed before or not. */
static void look_again(void)
{
	char got[32];
	int fd = open(state, O_RDONLY), other;
	FILE *f = fopen(state, "r");

	for (int i = 0; i < 2; i++) {
		expect("read again", read(fd, got, sizeof(got)) == 10 && read(fd, got, 1) == 0);
		expect("lseek", lseek(fd, 0, SEEK_SET) == 0);
		expect("pread", pread(fd, got, sizeof(got), 0) == 10);
		expect("stream again", f && fgets(got, sizeof(got), f) && got[0] == '4');
		if (f && i)
			rewind(f);
		else if (f)
			expect("fseek", fseek(f, 0, SEEK_SET) == 0);
	}
	if (f)
		fclose(f);
	/* Another file under the number of a live attribute is left alone. */
	close(fd);
	other = open("/dev/zero", O_RDONLY);
	expect("another file", other == fd && lseek(other, 0, SEEK_SET) == 0 &&
				       pread(other, got, sizeof(got), 0) == sizeof(got) && !got[0]);
	close(other);
}

static void look_at_status(void)
{
	struct stat st;
	struct stat64 st64;
	struct statx x;
	int dir = open(folder, O_RDONLY | O_DIRECTORY);

	expect("stat", stat(folder, &st) == 0 && S_ISDIR(st.st_mode));
	expect("stat64", stat64(folder, &st64) == 0 && S_ISDIR(st64.st_mode));
	expect("lstat", lstat(folder, &st) == 0 && S_ISLNK(st.st_mode));
	expect("lstat64", lstat64(folder, &st64) == 0 && S_ISLNK(st64.st_mode));
	expect("fstatat", fstatat(AT_FDCWD, folder, &st, 0) == 0 && S_ISDIR(st.st_mode));
	expect("fstatat64", fstatat64(dir, "board_id", &st64, 0) == 0 && S_ISREG(st64.st_mode));
	expect("statx", statx(AT_FDCWD, folder, 0, STATX_TYPE, &x) == 0 && S_ISDIR(x.stx_mode));
	expect("access", access(state, R_OK) == 0);
	expect("eaccess", eaccess(state, R_OK) == 0);
	expect("euidaccess", euidaccess(state, R_OK) == 0);
	expect("faccessat", faccessat(AT_FDCWD, state, R_OK, 0) == 0);
	expect("nothing there", access("/sys/class/infiniband/none", F_OK) && errno == ENOENT);
	expect("device node", stat("/dev/infiniband/uverbs0", &st) == 0 && S_ISCHR(st.st_mode));
	expect("device node rw", access("/dev/infiniband/uverbs0", R_OK | W_OK) == 0);
	close(dir);
}

static void look_around(const char *device)
{
	DIR *dir = opendir("/sys/class/infiniband/");
	struct dirent **list;
	struct dirent *e;
	bool seen = false;
	int n;

	while (dir && (e = readdir(dir)) != NULL)
		seen |= strcmp(e->d_name, device) == 0;
	expect("opendir", seen);
	if (dir)
		closedir(dir);
	n = scandir("/sys/class/infiniband_verbs", &list, NULL, alphasort);
	expect("scandir", n >= 4); /* ., .., abi_version, uverbs0 */
	for (int i = 0; i < n; i++)
		free(list[i]);
	if (n >= 0)
		free(list);
}

static void look_along_links(const char *device)
{
	char to[PATH_MAX] = "", wanted[PATH_MAX];
	char *real;

	snprintf(wanted, sizeof(wanted), "/sys/devices/virtual/softhca/%s/infiniband/%s", device,
		 device);
	expect("realpath", realpath(folder, to) && strcmp(to, wanted) == 0);
	real = realpath(folder, NULL);
	expect("realpath of its own", real && strcmp(real, wanted) == 0);
	free(real);
	real = canonicalize_file_name(folder);
	expect("canonicalize_file_name", real && strcmp(real, wanted) == 0);
	free(real);
	expect("readlink", readlink(folder, to, sizeof(to)) > 0);
	expect("readlinkat", readlinkat(AT_FDCWD, folder, to, sizeof(to)) > 0);
	expect("what realpath told", access(wanted, F_OK) == 0);
	snprintf(wanted, sizeof(wanted), "%.3000s/device/numa_node", folder);
	expect("device", says(open(wanted, O_RDONLY), "-1\n"));
	expect("untidy path",
	       says(open("/sys//class/./infiniband//../infiniband_verbs/abi_version", O_RDONLY),
		    "6\n"));
	expect("elsewhere", access("/sys/class", F_OK) == 0 && access("/proc/self", F_OK) == 0);
}

/* With one of its folders as the working directory. */
static void look_from_inside(void)
{
	char here[PATH_MAX] = "", real[PATH_MAX] = "";

	expect("chdir", chdir("/sys/class/infiniband") == 0 && chdir(folder) == 0);
	expect("open from inside", says(open("ports/1/state", O_RDONLY), "4: ACTIVE\n"));
	expect("openat from inside",
	       says(openat(AT_FDCWD, "ports/1/state", O_RDONLY), "4: ACTIVE\n"));
	expect("fopen from inside", stream_says(fopen("ports/1/state", "r"), "4: ACTIVE\n"));
	expect("fopen static from inside", stream_says(fopen("board_id", "r"), "softhca\n"));
	expect("getcwd", getcwd(here, sizeof(here)) &&
				 strncmp(here, "/sys/devices/virtual/softhca/", 29) == 0);
	expect("realpath from inside", realpath(".", real) && strcmp(real, here) == 0);
	expect("chdir to what getcwd told", chdir(here) == 0 && access("board_id", F_OK) == 0);
	expect("chdir away", chdir("/") == 0 && getcwd(here, sizeof(here)) && !here[1]);
}

/* The answer to the n bytes sent: one device or more. */
static bool answers(int fd, ssize_t n)
{
	char text[8192];
	struct nlmsghdr h;
	ssize_t got = n == NLMSG_HDRLEN ? recv(fd, text, sizeof(text), MSG_DONTWAIT) : -1;

	if (got <= NLMSG_HDRLEN)
		return false;
	memcpy(&h, text, sizeof(h));
	return h.nlmsg_len > NLMSG_HDRLEN && h.nlmsg_type != NLMSG_ERROR;
}

static void look_by_netlink(void)
{
	const struct nlmsghdr ask = {.nlmsg_len = NLMSG_HDRLEN,
				     .nlmsg_type =
					     RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
				     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP};
	struct iovec part = {(void *)&ask, sizeof(ask)};
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), other;

	expect("netlink", fd >= 0 && answers(fd, send(fd, &ask, sizeof(ask), 0)));
	expect("netlink connect",
	       connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0);
	expect("netlink write", answers(fd, write(fd, &ask, sizeof(ask))));
	expect("netlink writev", answers(fd, writev(fd, &part, 1)));
	other = dup(fd);
	expect("netlink dup", answers(fd, send(other, &ask, sizeof(ask), 0)));
	expect("netlink dup2", dup2(fd, 100) == 100 && close(fd) == 0 &&
				       answers(other, send(100, &ask, sizeof(ask), 0)));
	close(100);
	close(other);
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	expect("another netlink",
	       fd >= 0 && send(fd, "", 1, 0) == 1 && recv(fd, &part, 1, MSG_DONTWAIT) < 0);
	close(fd);
}

/* Once, as an address of an interface of that name. */
static bool lists(const struct ifaddrs *list, const char *interface, int family, const char *text)
{
	unsigned char address[sizeof(struct in6_addr)];
	size_t bytes = family == AF_INET ? 4 : sizeof(address);
	unsigned int found = 0;

	inet_pton(family, text, address);
	for (; list; list = list->ifa_next) {
		const char *at = (const char *)list->ifa_addr;

		if (!at || list->ifa_addr->sa_family != family)
			continue;
		at += family == AF_INET ? offsetof(struct sockaddr_in, sin_addr)
					: offsetof(struct sockaddr_in6, sin6_addr);
		if (memcmp(at, address, bytes) == 0)
			found += strcmp(list->ifa_name, interface) == 0 &&
				 list->ifa_flags & IFF_UP && list->ifa_netmask;
	}
	return found == 1;
}

/* The addresses of run.sh's device, beside the kernel's. */
static void look_at_addresses(const char *device)
{
	struct ifaddrs *list = NULL;

	expect("getifaddrs", getifaddrs(&list) == 0);
	expect("the kernel's addresses", lists(list, "lo", AF_INET, "127.0.0.1"));
	expect("the device's IPv4 address", lists(list, device, AF_INET, "10.9.0.1"));
	expect("the device's IPv6 address", lists(list, device, AF_INET6, "fd09::1"));
	freeifaddrs(list);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s", argv[1]);
	snprintf(state, sizeof(state), "%.3000s/ports/1/state", folder);
	snprintf(version, sizeof(version), "%.3000s/board_id", folder);
	look_opening();
	look_again();
	look_at_status();
	look_around(argv[1]);
	look_along_links(argv[1]);
	look_from_inside();
	look_by_netlink();
	look_at_addresses(argv[1]);
	return failed != 0;
}
