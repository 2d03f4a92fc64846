/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs that use the daemon. Changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include "clients_view.h"
#include "daemon.h"
#include "views.h"

enum { CLIENTS_LISTED_MAX = 40, COMMAND_BYTES = 32 }; /* an answer of telemetry has 16 KiB */

/* What the process calls itself; "": not to be seen from here. It may use any bytes, which are not
 * for terminals. */
static const char *command_of(char text[COMMAND_BYTES], int pid)
{
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return text;
	if (!fgets(text, COMMAND_BYTES, file))
		text[0] = '\0';
	fclose(file);
	for (char *c = text; *c; c++) {
		if (*c == '\n')
			*c = '\0';
		else if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '?';
	}
	return text;
}

static json_t *client_of(const struct control_client_info *it)
{
	json_t *to = dict_new();

	if (!to)
		return NULL;
	CLIENT_VIEW(PUT)
	CLIENT_MORE_VIEW(PUT)
	return to;
}

void clients_put(const struct daemon *d, uint32_t before, json_t *to)
{
	unsigned count = control_clients(d->control, NULL, 0), listed = 0;
	struct control_client_info *client = calloc(count ? count : 1, sizeof(*client));
	json_t *clients = dict_new();

	if (client)
		control_clients(d->control, client, count);
	dict_u64(to, "client_count", count);
	for (unsigned i = 0; client && clients && i < count; i++) {
		if (before && client[i].id >= before)
			continue;
		if (listed++ == CLIENTS_LISTED_MAX) {
			dict_u64(to, "next", client[i - 1].id);
			break;
		}
		dict_put_numbered(clients, client[i].id, client_of(&client[i]));
	}
	dict_put(to, "clients", clients);
	free(client);
}
