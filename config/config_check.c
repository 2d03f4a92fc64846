/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks how the settings of a configuration fit together, and fills in derived values. Pure,
 * except for the environment, which decides default paths. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include "config_file.h"
#include "setting.h"

enum {
	MTU_BYTES_LEAST = MTU_BYTES_MIN + PORT_ROCE_OVERHEAD,
	/* Buffers of an engine: full rings between its modules, receive queues, lcores' caches. */
	PACKETS_OF_ENGINE = 1023, /* plus those waiting for acknowledgement */
	PACKETS_OF_LCORE = 768,	  /* most that an lcore's cache withholds from others */
	DESCRIPTORS_OF_ENGINE = 2047,
	CLONES_OF_ENGINE = 1023,
	BUFFERS_LEAST = 511, /* of each kind */
};

static int refuse_hca(struct reason *why, const struct hca_section *h, const char *key,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Reports the line of that setting. */
static int refuse_hca(struct reason *why, const struct hca_section *h, const char *key,
		      const char *format, ...)
{
	int used = snprintf(why->text, sizeof(why->text), "[hca %s]: ", h->name);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why->text + used, sizeof(why->text) - used, format, arguments);
	va_end(arguments);
	why->line = setting_line(h, key);
	return -EINVAL;
}

static int fill_daemon(struct daemon_config *d, struct reason *why)
{
	enum { FOR_A_GROUP = 0660, FOR_ALL = 0666 };

	if (!d->socket[0] && paths_default_socket(d->socket, sizeof(d->socket)))
		return refuse(why, "the default socket path is too long: set daemon.socket");
	if (!d->prefix[0] && paths_prefix(d->socket, d->prefix, sizeof(d->prefix)))
		return refuse(why, "the default prefix is too long: set daemon.prefix");
	if (!d->socket_mode)
		d->socket_mode =
			strcmp(d->socket, PATHS_SYSTEM_SOCKET) == 0 ? FOR_A_GROUP : FOR_ALL;
	return 0;
}

static int check_ring(struct config *c, const struct hca_section *h, struct reason *why)
{
	const struct hca_section *peer;

	if (!h->port.peer[0])
		return refuse_hca(why, h, "peer", "a ring port needs a peer");
	peer = config_find_hca(c, h->port.peer);
	if (!peer)
		return refuse_hca(why, h, "peer", "there is no HCA '%s' to be its peer",
				  h->port.peer);
	if (peer->port.type != PORT_RING)
		return refuse_hca(why, h, "peer", "its peer '%s' is not a ring port", peer->name);
	if (strcmp(peer->port.peer, h->name) != 0)
		return refuse_hca(why, h, "peer", "the peer of its peer '%s' is '%.30s'",
				  peer->name, peer->port.peer);
	if (!peer->removed && peer->engines != h->engines)
		return refuse_hca(why, h, "engines",
				  "its peer '%s' has a different number of engines", peer->name);
	return 0;
}

static int check_port(struct config *c, const struct hca_section *h, struct reason *why)
{
	const struct port_config *p = &h->port;

	if (p->type != PORT_RING && !p->device[0])
		return refuse_hca(why, h, "device", "name a device: a port of this type needs one");
	if (p->backup[0] && p->type != PORT_AF_PACKET)
		return refuse_hca(why, h, "backup", "only an af_packet port has a backup");
	if (p->backup[0] && strcmp(p->backup, p->device) == 0)
		return refuse_hca(why, h, "backup", "its backup is its device");
	if (!p->backup[0] && p->bond_mode != BOND_ACTIVE_BACKUP)
		return refuse_hca(why, h, "bond_mode", "bond_mode needs a backup");
	if (p->addresses.count == 0)
		return refuse_hca(why, h, "address", "has no address, nor has its interface one");
	if (p->mtu_bytes && p->mtu_bytes < MTU_BYTES_LEAST)
		return refuse_hca(why, h, "mtu", "mtu: RoCE needs at least %d", MTU_BYTES_LEAST);
	if (h->icrc == CONFIG_ICRC_NEVER && p->type != PORT_MEMIF)
		return refuse_hca(why, h, "icrc", "only a memif port can do without ICRC");
	if (p->queues < h->engines)
		return refuse_hca(why, h, "queues", "fewer queues than engines");
	if (p->queues > h->engines)
		return refuse_hca(why, h, "queues",
				  "more queues than engines: nobody would poll them");
	if (p->type == PORT_RING)
		return check_ring(c, h, why);
	if (p->peer[0])
		return refuse_hca(why, h, "peer", "only a ring port has a peer");
	return 0;
}

static bool same_address(const struct port_config *a, const struct port_config *b, bool same_port)
{
	for (unsigned i = 0; i < a->addresses.count; i++) {
		for (unsigned k = same_port ? i + 1 : 0; k < b->addresses.count; k++) {
			if (memcmp(a->addresses.at[i].ip, b->addresses.at[k].ip, 16) == 0)
				return true;
		}
	}
	return false;
}

static bool same_device(const struct port_config *a, const struct port_config *b)
{
	if (a->type == PORT_RING || a->type != b->type)
		return false;
	if (b->backup[0] && (!strcmp(a->device, b->backup) || !strcmp(a->backup, b->backup)))
		return true;
	if (strcmp(a->device, b->device) != 0 && strcmp(a->backup, b->device) != 0)
		return false;
	return a->type != PORT_MEMIF ||
	       (a->memif_id == b->memif_id && a->memif_server == b->memif_server);
}

/* A pair of HCAs, or one with itself. */
static int check_pair(const struct hca_section *a, const struct hca_section *b, struct reason *why)
{
	if (a->removed || b->removed) /* what it had is free for others */
		return 0;
	if (same_address(&a->port, &b->port, a == b))
		return refuse_hca(why, b, "address", "an address is listed twice, in [hca %s]",
				  a->name);
	if (a != b && same_device(&a->port, &b->port))
		return refuse_hca(why, b, "device", "its device is also that of [hca %s]", a->name);
	return 0;
}

/* The engine of a placement must exist. */
static int check_places(const struct hca_section *h, struct reason *why)
{
	for (unsigned e = h->engines; e < ENGINES_MAX; e++) {
		for (unsigned s = 0; s < STAGE_COUNT; s++) {
			if (h->cpu[e][s] != CONFIG_CPU_AUTO)
				return refuse_hca(why, h, "lcore.",
						  "lcore.%s.%u: there are %u engines",
						  stage_infos[s].name, e, h->engines);
		}
	}
	return 0;
}

/* The most specific setting wins: one engine, all engines, all stages. */
static void fill_places(struct hca_section *h)
{
	for (unsigned e = 0; e < h->engines; e++) {
		for (unsigned s = 0; s < STAGE_COUNT; s++) {
			if (h->cpu[e][s] == CONFIG_CPU_AUTO)
				h->cpu[e][s] = h->cpu[ENGINES_MAX][s];
			if (h->cpu[e][s] == CONFIG_CPU_AUTO)
				h->cpu[e][s] = h->stages_cpu;
		}
	}
}

static int fill_number(struct reason *why, const char *key, uint32_t *number, uint32_t computed,
		       uint32_t least)
{
	if (*number == 0)
		*number = computed;
	if (*number < least)
		return refuse(why, "daemon.%s: %u are too few, at least %u are needed", key,
			      *number, least);
	return 0;
}

/* CPUs that an engine's stages are spread over: each lcore has its own buffer cache. */
static uint32_t check_lcores_of(const int16_t cpu[STAGE_COUNT])
{
	uint32_t n = 0;

	for (unsigned s = 0; s < STAGE_COUNT; s++) {
		unsigned same = 0;

		while (same < s && cpu[same] != cpu[s])
			same++;
		n += same == s;
	}
	return n;
}

struct config_buffers config_buffers_of(const struct hca_section *h, unsigned engine)
{
	const uint32_t spread = (check_lcores_of(h->cpu[engine]) - 1) * PACKETS_OF_LCORE;

	return (struct config_buffers){.packets = PACKETS_OF_ENGINE + spread +
						  h->settings.swpb_elements,
				       .descriptors = DESCRIPTORS_OF_ENGINE + spread,
				       .clones = CLONES_OF_ENGINE + spread};
}

/* Refuses a pool that the retransmit buffers alone could exhaust, leaving none for
 * acknowledgements. */
static int fill_buffers(struct config *c, struct reason *why)
{
	struct config_buffers all = {1, 1, 1};
	struct daemon_config *d = &c->daemon;
	uint32_t unacknowledged = 0;
	int ret;

	for (unsigned i = 0; i < c->hcas; i++) {
		for (unsigned e = 0; !c->hca[i].removed && e < c->hca[i].engines; e++) {
			const struct config_buffers its = config_buffers_of(&c->hca[i], e);

			all.packets += its.packets;
			all.descriptors += its.descriptors;
			all.clones += its.clones;
			unacknowledged += c->hca[i].settings.swpb_elements;
		}
	}
	ret = fill_number(why, "packet_buffers", &d->packet_buffers, all.packets,
			  unacknowledged + BUFFERS_LEAST);
	if (!ret)
		ret = fill_number(why, "descriptor_buffers", &d->descriptor_buffers,
				  all.descriptors, BUFFERS_LEAST);
	if (!ret)
		ret = fill_number(why, "clone_buffers", &d->clone_buffers, all.clones,
				  BUFFERS_LEAST);
	return ret;
}

/* Both ends of a ring have to agree: what one omits the other does not check. The peer of a ring
 * port exists. */
static enum icrc_mode icrc_mode(struct config *c, const struct hca_section *h)
{
	if (h->icrc == CONFIG_ICRC_ALWAYS)
		return ICRC_ALWAYS;
	if (h->icrc == CONFIG_ICRC_NEVER)
		return ICRC_NEVER;
	if (h->port.type != PORT_RING ||
	    config_find_hca(c, h->port.peer)->icrc == CONFIG_ICRC_ALWAYS)
		return ICRC_TO_OTHERS;
	return ICRC_NEVER;
}

static bool shows_or_changes(const struct port_config *port)
{
	const struct port_impairment *i = &port->impairment;

	return port->capture_path[0] || i->loss > 0 || i->duplicate > 0 || i->reorder > 0 ||
	       i->corrupt > 0 || i->mark > 0 || i->delay_us || i->jitter_us || i->rate_mbps;
}

/* Do the stages of an engine run on several lcores? */
static bool is_spread(const struct hca_section *h)
{
	for (unsigned e = 0; e < h->engines; e++)
		if (check_lcores_of(h->cpu[e]) > 1)
			return true;
	return false;
}

/*
 * Why packets have to have their payload with them; NULL: they may refer to it. Both ends of a ring
 * must be willing, and nobody may copy frames for others to see. A driver has to copy them, and what
 * ends a reference has to run on the same lcore.
 */
static const char *must_copy(struct config *c, const struct hca_section *h)
{
	const struct hca_section *peer;

	if (shows_or_changes(&h->port))
		return "its port captures or impairs packets";
	if (h->port.type == PORT_RING) {
		peer = config_find_hca(c, h->port.peer);
		return peer->tx_copy == CONFIG_TX_COPY_ALWAYS || shows_or_changes(&peer->port)
			       ? "its peer copies, captures or impairs packets"
			       : NULL;
	}
	if (h->port.type != PORT_MEMIF && h->port.type != PORT_AF_PACKET)
		return "only ring, memif and af_packet ports take references";
	return is_spread(h) ? "the stages of an engine run on several lcores" : NULL;
}

/* With an ICRC, reading the payload for it and again for the driver takes as long as one copy more
 * (doc/tuning.md). */
static bool pays(const struct hca_section *h)
{
	return h->port.type == PORT_RING ||
	       (h->port.type == PORT_MEMIF && h->icrc == CONFIG_ICRC_NEVER);
}

static int fill_payload_refs(struct config *c, struct hca_section *h, struct reason *why)
{
	const char *reason = must_copy(c, h);

	h->settings.payload_refs = REFS_NONE;
	if (h->tx_copy == CONFIG_TX_COPY_NEVER && reason)
		return refuse_hca(why, h, "tx_copy", "tx_copy = never: %s", reason);
	if (reason || h->tx_copy == CONFIG_TX_COPY_ALWAYS ||
	    (h->tx_copy == CONFIG_TX_COPY_AUTO && !pays(h)))
		return 0;
	h->settings.payload_refs = h->port.type == PORT_RING ? REFS_IN_TRAINS : REFS_SINGLY;
	return 0;
}

static int check_all(struct config *c, struct reason *why)
{
	int ret = fill_daemon(&c->daemon, why);

	if (!ret && c->hcas == 0)
		ret = refuse(why, "there is no [hca NAME]");
	for (unsigned i = 0; i < c->hcas && !ret; i++) {
		if (c->hca[i].port.queues == 0)
			c->hca[i].port.queues = c->hca[i].engines;
		ret = check_places(&c->hca[i], why);
		if (!ret)
			fill_places(&c->hca[i]);
	}
	for (unsigned i = 0; i < c->hcas && !ret; i++) {
		if (c->hca[i].removed)
			continue;
		ret = check_port(c, &c->hca[i], why);
		for (unsigned k = 0; k <= i && !ret; k++)
			ret = check_pair(&c->hca[k], &c->hca[i], why);
		if (!ret) {
			c->hca[i].settings.icrc = icrc_mode(c, &c->hca[i]);
			c->hca[i].port.icrc_omitted = c->hca[i].icrc == CONFIG_ICRC_NEVER;
			ret = fill_payload_refs(c, &c->hca[i], why);
		}
	}
	return ret ? ret : fill_buffers(c, why);
}

int config_check(struct config *c, const char *origin, struct config_error *error)
{
	struct reason why = {.line = 0};
	int ret = check_all(c, &why);

	if (ret && why.line)
		snprintf(error->text, sizeof(error->text), "%.200s:%u: %s", origin, why.line,
			 why.text);
	else if (ret)
		snprintf(error->text, sizeof(error->text), "%.200s: %s", origin, why.text);
	return ret;
}
