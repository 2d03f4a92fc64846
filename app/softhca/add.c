/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca add`: adds an HCA to the running daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "commands.h"
#include "target.h"
#include "view.h"

/* The keys of an HCA's section. A key may continue after a dot, as in lcore.STAGE. */
static const char *const keys[] = {
#define DAEMON(key)
#define HCA(key)							   key,
#define SETTING(scope, key, kind, field, unit, def, min, max, change, doc) scope(key)
#include "settings.def"
#undef DAEMON
#undef HCA
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static bool is_key(const char *key)
{
	for (unsigned i = 0; i < KEYS; i++) {
		size_t dot = strcspn(keys[i], ".");

		if (strcmp(keys[i], key) == 0 ||
		    (keys[i][dot] && strncmp(keys[i], key, dot + 1) == 0))
			return true;
	}
	return false;
}

/* Adds a line "KEY=VALUE". Exit code. */
static int add_setting_line(struct control_add_hca *in, const char *word)
{
	size_t used = strlen(in->settings), n = strcspn(word, "=");
	char key[sizeof(in->settings)];

	if (!word[n] || strchr(word, '\n')) {
		fprintf(stderr, "softhca: '%s' is not of the form KEY=VALUE\n", word);
		return EXIT_CODE_USAGE;
	}
	snprintf(key, sizeof(key), "%.*s", (int)n, word);
	if (!is_key(key))
		return refuse_setting(key, keys, KEYS);
	if (snprintf(in->settings + used, sizeof(in->settings) - used, "%s\n", word) >=
	    (int)(sizeof(in->settings) - used))
		return failed(in->device, "too many settings for a command");
	return EXIT_CODE_OK;
}

int view_add(struct connection *unused, const struct request *r)
{
	struct control_add_hca in = {.version = CONTROL_VERSION};
	int code = EXIT_CODE_OK;

	(void)unused;
	if (!r->object) {
		fputs("softhca: add which HCA? As in 'softhca add hca2 peer=hca2 "
		      "address=192.168.78.1/24'; 'softhca set --all' lists settings\n",
		      stderr);
		return EXIT_CODE_USAGE;
	}
	if (snprintf(in.device, sizeof(in.device), "%s", r->object) >= (int)sizeof(in.device))
		return failed(r->object, strerror(ENAMETOOLONG));
	for (unsigned i = 0; i < r->value_count && !code; i++)
		code = add_setting_line(&in, r->values[i]);
	if (code)
		return code;
	return ask_change(r, CONTROL_ADD_HCA, &in, sizeof(in), r->object,
			  ONLY_ADMINS_MAY("add HCAs"));
}
