/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EAL from the configuration: memory with or without hugepages, one lcore per CPU in use and a
 * floating one for the control thread, only the named PCI devices. Control thread.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include "base/log.h"
#include "eal.h"
#include "hca/hca.h"
#include "pipeline/message.h"
#include "visible_pools.h"

enum { ARGS_MAX = 48, ARG_BYTES = 2048, HUGE_2MIB_LOG = 21, HUGE_1GIB_LOG = 30 };

struct args {
	char text[ARGS_MAX][ARG_BYTES];
	char *argv[ARGS_MAX + 1];
	int argc;
};

static void eal_add_argument(struct args *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The number of arguments is bounded by HCA_MAX and fits. */
static void eal_add_argument(struct args *a, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(a->text[a->argc], ARG_BYTES, format, arguments);
	va_end(arguments);
	a->argv[a->argc] = a->text[a->argc];
	a->argc++;
}

/* Upper estimate for one HCA; contexts are allocated elsewhere (base/icm.h). */
static uint64_t hca_bytes(const struct hca_section *h)
{
	uint64_t tables = (uint64_t)h->mpts * (sizeof(struct mpt_entry) + 1) +
			  (uint64_t)h->mtts * 9 + h->mpt_cache_bytes / 4 * 5 +
			  h->mtt_cache_bytes / 2 * 3 + (2u << 20);
	const struct engine_settings *s = &h->settings;
	uint64_t buffers =
		64ull * s->swpb_elements + 256ull * s->rpb_elements + 64ull * s->reb_elements;
	uint64_t engine = buffers + 64ull * s->timer_slots + sizeof(struct engine) + (2u << 20);

	return tables + sizeof(struct completion) + h->engines * engine;
}

/* Upper estimate of a pool: mempool header, struct rte_mbuf, private area, room. */
static uint64_t pool_bytes(uint64_t buffers, unsigned room)
{
	return buffers * (64 + sizeof(struct rte_mbuf) + MESSAGE_PRIV_BYTES + room + 64);
}

static uint64_t buffer_bytes(uint64_t packets, uint64_t descriptors, uint64_t clones)
{
	return pool_bytes(packets, PACKET_ROOM_BYTES) +
	       pool_bytes(descriptors, DESCRIPTOR_ROOM_BYTES) + pool_bytes(clones, 0);
}

/* Plus a quarter for fragmentation. */
static uint32_t to_mib(uint64_t bytes)
{
	return (bytes + bytes / 4) >> 20;
}

/* What an HCA takes that is added later, with buffers of its own. */
static uint32_t added_mib(const struct hca_section *h)
{
	uint64_t bytes = hca_bytes(h);

	for (unsigned e = 0; e < h->engines; e++) {
		const struct config_buffers n = config_buffers_of(h, e);

		bytes += buffer_bytes(n.packets, n.descriptors, n.clones);
	}
	return to_mib(bytes);
}

/* What the configuration needs. */
static uint32_t memory_needed_mib(const struct config *c)
{
	const struct daemon_config *d = &c->daemon;
	uint64_t bytes = 16u << 20;

	for (unsigned i = 0; i < c->hcas; i++)
		bytes += hca_bytes(&c->hca[i]);
	return to_mib(bytes +
		      buffer_bytes(d->packet_buffers, d->descriptor_buffers, d->clone_buffers));
}

/* Room for HCAs that may be added, which costs address space until they are. */
static uint32_t memory_spare_mib(const struct config *c)
{
	return (HCA_MAX - c->hcas) * added_mib(&c->hca[0]);
}

/* Are that many hugepages free? Maps them, which reserves without touching them, and unmaps
 * them. */
static bool hugepages_free(uint64_t bytes, int page_log)
{
	uint64_t page = 1ull << page_log;
	uint64_t rounded = (bytes + page - 1) & ~(page - 1);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | page_log << MAP_HUGE_SHIFT;
	void *map = mmap(NULL, rounded, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (map == MAP_FAILED)
		return false;
	munmap(map, rounded);
	return true;
}

bool eal_hugepages_free(uint32_t mib)
{
	uint64_t bytes = (uint64_t)mib << 20;

	return hugepages_free(bytes, HUGE_2MIB_LOG) || hugepages_free(bytes, HUGE_1GIB_LOG);
}

/* *reserved_mib: set if there are no hugepages. */
static void add_memory(struct args *a, const struct config *config, uint32_t *reserved_mib)
{
	const struct daemon_config *c = &config->daemon;
	uint32_t needed_mib = memory_needed_mib(config);

	if (c->hugepages_mib != CONFIG_HUGEPAGES_OFF && c->hugepages_mib != CONFIG_HUGEPAGES_AUTO) {
		eal_add_argument(a, "--in-memory");
		eal_add_argument(a, "-m");
		eal_add_argument(a, "%u", c->hugepages_mib);
		LOG(INFO, "memory: %u MiB of hugepages", c->hugepages_mib);
		return;
	}
	if (c->hugepages_mib == CONFIG_HUGEPAGES_AUTO && eal_hugepages_free(needed_mib)) {
		eal_add_argument(a, "--in-memory");
		LOG(INFO, "memory: hugepages as needed, about %u MiB", needed_mib);
		return;
	}
	*reserved_mib = c->memory_mib ? c->memory_mib : needed_mib + memory_spare_mib(config);
	eal_add_argument(a, "--no-huge");
	eal_add_argument(a, "-m");
	eal_add_argument(a, "%u", *reserved_mib);
	LOG(INFO, "memory: no hugepages (%s), %u MiB reserved",
	    c->hugepages_mib == CONFIG_HUGEPAGES_OFF ? "off" : "not enough free", *reserved_mib);
}

/* lcore 0 is the control thread's and not bound; lcore i + 1 is bound to cpus[i]. */
static void add_lcores(struct args *a, const struct config_cpus *cpus)
{
	char text[ARG_BYTES];
	int used = snprintf(text, sizeof(text), "0@(");
	const char *comma = "";
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && used < ARG_BYTES / 2; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		used += snprintf(text + used, sizeof(text) - used, "%s%u", comma, cpu);
		comma = ",";
	}
	used += snprintf(text + used, sizeof(text) - used, ")");
	for (unsigned i = 0; i < cpus->count; i++)
		used += snprintf(text + used, sizeof(text) - used, ",%u@%u", i + 1, cpus->cpu[i]);
	eal_add_argument(a, "--lcores");
	eal_add_argument(a, "%s", text);
}

static void add_devices(struct args *a, const struct config *c)
{
	bool any = false;

	for (unsigned i = 0; i < c->hcas; i++) {
		if (c->hca[i].port.type != PORT_PCI)
			continue;
		any = true;
		eal_add_argument(a, "-a");
		eal_add_argument(a, "%s", c->hca[i].port.device);
	}
	if (!any)
		eal_add_argument(a, "--no-pci");
}

int eal_start(const struct config *c, const struct config_cpus *cpus, uint32_t *memory_mib)
{
	static struct args args; /* EAL keeps pointers into it */

	eal_add_argument(&args, "softhcad");
	eal_add_argument(&args, "--file-prefix");
	eal_add_argument(&args, "%s", c->daemon.prefix);
	eal_add_argument(&args, "--iova-mode=va");
	/*
	 * Of patterns for types registered later the first wins, for types registered
	 * already the last. Telemetry complains about its version 1, which no one uses.
	 */
	eal_add_argument(&args, "--log-level=lib.telemetry:error");
	eal_add_argument(&args, "--log-level=*:warning");
	eal_add_argument(
		&args,
		"--log-level=lib.eal:error"); /* it warns of each missing kind of hugepages */
	add_lcores(&args, cpus);
	add_devices(&args, c);
	*memory_mib = 0;
	add_memory(&args, c, memory_mib);
	for (int i = 1; i < args.argc; i++)
		LOG(DEBUG, "EAL argument: %s", args.text[i]);
	if (rte_eal_init(args.argc, args.argv) < 0) {
		LOG(ERR, "cannot start EAL: %s", rte_strerror(rte_errno));
		return -rte_errno;
	}
	log_set_levels(&c->daemon.log_level);
#ifdef SOFTHCA_VISIBLE_POOLS
	return rte_mbuf_set_user_mempool_ops(visible_pools());
#else
	return 0;
#endif
}

void eal_explain_memory(const struct hca_section *h, uint32_t reserved_mib, char *text,
			size_t bytes)
{
	struct rte_malloc_socket_stats heap = {.heap_freesz_bytes = 0};

	if (!reserved_mib) {
		snprintf(text, bytes, ": it takes about %u MiB of hugepages", added_mib(h));
		return;
	}
	rte_malloc_get_socket_stats(0, &heap);
	snprintf(text, bytes,
		 ": it takes about %u MiB, %u of %u are free: restart with a larger "
		 "daemon.memory_mib, or with hugepages",
		 added_mib(h), (unsigned)(heap.heap_freesz_bytes >> 20), reserved_mib);
}
