/* SPDX-License-Identifier: BSD-3-Clause */
/* HCAs that join the configuration of a running daemon, by themselves or with a file that is read
 * again. Pure. */
#include <errno.h>
#include <string.h>
#include "config_file.h"
#include "setting.h"

/* A ring's other end that does not exist yet gets a place, as if it had been removed. */
static int keep_place_of_peer(struct config *c, const char *name, struct reason *why)
{
	const struct hca_section *h = config_find_hca(c, name);
	struct hca_section *peer;
	char peer_name[CONFIG_NAME_BYTES];

	if (h->port.type != PORT_RING || !h->port.peer[0] || config_find_hca(c, h->port.peer))
		return 0;
	memcpy(peer_name, h->port.peer, sizeof(peer_name));
	if (config_add_hca(c, peer_name, &peer, why))
		return -EINVAL;
	peer->removed = true;
	memcpy(peer->port.peer, name, strlen(name));
	return 0;
}

/* One line "KEY=VALUE" of n bytes. */
static int add_setting(struct hca_section *h, const char *line, size_t n, struct reason *why)
{
	char text[CONFIG_TEXT_BYTES], *equals;

	snprintf(text, sizeof(text), "%.*s", (int)n, line);
	equals = strchr(text, '=');
	if (!equals || n >= sizeof(text))
		return refuse(why, "'%.60s' is not of the form KEY=VALUE", text);
	*equals = '\0';
	return setting_apply(SCOPE_HCA, h, text, equals + 1, why);
}

static int add_section(struct config *c, const char *name, const char *lines, struct reason *why)
{
	struct hca_section *h;
	int ret = config_add_hca(c, name, &h, why);

	while (!ret && *lines) {
		size_t n = strcspn(lines, "\n");

		ret = n ? add_setting(h, lines, n, why) : 0;
		lines += n + (lines[n] != '\0');
	}
	if (ret)
		return ret;
	if (!config_may_add(h))
		return refuse(why, "a running daemon can open ports of type ring and memif only: "
				   "for others add its section to the file and restart");
	return keep_place_of_peer(c, name, why);
}

bool config_may_add(const struct hca_section *h)
{
	return h->port.type == PORT_RING || h->port.type == PORT_MEMIF;
}

bool config_names_files(const struct config *c, const char *name)
{
	for (unsigned i = 0; i < c->hcas; i++) {
		const struct port_config *p = &c->hca[i].port;

		if (strcmp(p->name, name) == 0)
			return p->type != PORT_RING || p->capture_path[0];
	}
	return false;
}

int config_add(struct config *c, const char *name, const char *lines, struct config_error *error)
{
	struct reason why;
	int ret = add_section(c, name, lines, &why);

	if (ret)
		snprintf(error->text, sizeof(error->text), "%s", why.text);
	return ret;
}

int config_fits(const struct config *running, const struct config *checked,
		struct config_error *error)
{
	for (unsigned i = 0; i < running->hcas; i++) {
		const struct hca_section *now = &running->hca[i], *then = &checked->hca[i];

		if (now->removed || then->removed || now->settings.icrc == then->settings.icrc)
			continue;
		snprintf(error->text, sizeof(error->text),
			 "the ring of %s needs icrc = auto at both ends, as it runs", now->name);
		return -EINVAL;
	}
	return 0;
}
