/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `softhca web`: a page that shows a daemon live, and the daemon's answers as the JSON that it asks
 * for. Each request queries the daemon anew, so the page outlives restarts of the daemon.
 *
 * Anybody on this host can reach the address, but the answers show what the user who started us may
 * see. So each request needs a key, generated at each start and printed after the '#' of the
 * address. The key also keeps out pages of other sites that use DNS rebinding; their Host header is
 * refused, too. Requests change nothing, except that modules are measured while somebody looks, as
 * by `softhca top`.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include "columns.h"
#include "http.h"
#include "target.h"
#include "web.h"

enum { KEY_BYTES = 16, KEY_DIGITS = 2 * KEY_BYTES, NAME_BYTES = 64, QPN_DIGITS_MAX = 8 };

#define JSON_TYPE "application/json"
#define BEARER	  "Bearer "

/* The key, where it is printed: behind "/#". */
static char page[sizeof("/#") + KEY_DIGITS] = "/#";
static const char *const key = page + 2;

static struct http_reply refusal(enum http_status status, const char *words)
{
	return http_words(status, "text/plain; charset=utf-8", words);
}

/* ---- who asks ---- */

/* "localhost" or an address, which no name server can redirect; with any port or none, since there
 * may be a tunnel. */
static bool host_is_address(const char *host)
{
	char name[NAME_BYTES];
	struct in6_addr address;
	size_t length;

	if (!host)
		return false;
	length = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
	if (length >= sizeof(name))
		return false;
	if (host[0] == '[') {
		memcpy(name, host + 1, length);
		name[length - 1] = '\0';
		return host[length] == ']' && inet_pton(AF_INET6, name, &address) == 1;
	}
	memcpy(name, host, length);
	name[length] = '\0';
	return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1;
}

/* Takes the same time whether or not the key begins correctly. */
static bool has_key(const struct http_get *get)
{
	const char *given = http_header(get, "Authorization");
	unsigned differs = 0;

	if (!given || strncmp(given, BEARER, strlen(BEARER)) != 0)
		return false;
	given += strlen(BEARER);
	if (strlen(given) != KEY_DIGITS)
		return false;
	for (unsigned i = 0; i < KEY_DIGITS; i++)
		differs |= given[i] ^ key[i];
	return differs == 0;
}

/* ---- the daemon's answers; NULL: it has none ---- */

static json_t *web_ask_all(struct connection *c, const struct http_get *get)
{
	return all_ask(c, get->request);
}

static json_t *ask_topology(struct connection *c, const struct http_get *get)
{
	return connection_ask(c, "topology", NULL);
}

/* What the modules of each engine do and cost, by "HCA,ENGINE". */
static json_t *ask_runtime(struct connection *c, const struct http_get *get)
{
	json_t *status = connection_ask(c, "status", NULL), *to = json_object(), *port;
	const char *wanted = get->request->hca, *hca;
	bool ok = status;

	json_object_foreach(json_object_get(status, "ports"), hca, port)
	{
		if (!wanted || strcmp(wanted, hca) == 0)
			ok = ok && (engines_ask_into(c, to, "runtime", hca) || hca_has_gone(c));
	}
	json_decref(status);
	if (ok)
		return to;
	json_decref(to);
	return NULL;
}

/* One queue pair in full: ?hca=NAME&qpn=NUMBER. */
static json_t *ask_qp(struct connection *c, const struct http_get *get)
{
	const char *hca = http_argument(get, "hca"), *qpn = http_argument(get, "qpn");
	char which[NAME_BYTES + QPN_DIGITS_MAX];

	if (!hca || !qpn || strlen(hca) + 2 > NAME_BYTES || strlen(qpn) > QPN_DIGITS_MAX ||
	    strchr(hca, ',') || qpn[0] < '1' || qpn[strspn(qpn, "0123456789")])
		return NULL;
	snprintf(which, sizeof(which), "%s,%s", hca, qpn);
	return connection_ask(c, "qp", which);
}

static const struct {
	const char *path;
	json_t *(*ask)(struct connection *c, const struct http_get *get);
} answers[] = {
	{"/all.json", web_ask_all},
	{"/runtime.json", ask_runtime},
	{"/topology.json", ask_topology},
	{"/qp.json", ask_qp},
};

static struct http_reply print(const json_t *answer)
{
	char *text = json_dumps(answer, JSON_COMPACT);

	return (struct http_reply){HTTP_OK, JSON_TYPE, text, text ? strlen(text) : 0, true};
}

static struct http_reply web_answer(json_t *(*ask)(struct connection *, const struct http_get *),
				    const struct http_get *get)
{
	static struct connection c; /* there is one thread */
	struct http_reply reply;
	json_t *answered;

	if (!has_key(get))
		return refusal(HTTP_UNAUTHORIZED, "the key is missing, or wrong\n");
	if (target_connect(get->request, &c))
		return refusal(HTTP_UNAVAILABLE, "No daemon answers.\n");
	answered = ask(&c, get);
	if (answered)
		reply = print(answered);
	else if (c.fd < 0)
		reply = refusal(HTTP_UNAVAILABLE, "The daemon has gone.\n");
	else
		reply = refusal(HTTP_NOT_FOUND, "there is no such object\n");
	json_decref(answered);
	connection_close(&c);
	return reply;
}

static struct http_reply get_page(const struct http_get *get)
{
	if (!host_is_address(http_header(get, "Host")))
		return refusal(HTTP_FORBIDDEN,
			       "only by an address or as localhost, not by another name\n");
	for (unsigned i = 0; i < COUNT_OF(answers); i++) {
		if (strcmp(get->path, answers[i].path) == 0)
			return web_answer(answers[i].ask, get);
	}
	for (const struct web_file *f = web_files; f->path; f++) {
		if (strcmp(get->path, f->path) == 0)
			return (struct http_reply){HTTP_OK, f->type, f->text, f->bytes, false};
	}
	return refusal(HTTP_NOT_FOUND, "there is no such page\n");
}

static bool make_key(void)
{
	unsigned char bytes[KEY_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	for (unsigned i = 0; i < KEY_BYTES; i++)
		snprintf(page + 2 + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

int view_web(struct connection *c, const struct request *r)
{
	static const struct http_field fields[] = {
		{"Content-Security-Policy",
		 "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
		 "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"},
		{"Cache-Control", "no-store"},
		{NULL, NULL},
	};
	static const struct http_server server = {
		.usual = "127.0.0.1:9316", .path = page, .fields = fields, .get = get_page};

	if (!make_key())
		return failed("cannot make a key", "no random numbers");
	return http_serve(&server, r);
}
