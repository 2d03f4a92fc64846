/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHOW_H
#define SHOW_H
/*
 * What the daemon shows of itself: views, by name and parameters, as dictionaries. Whoever may
 * connect to the control socket may see them. Under the daemon's lock; changes nothing, except that
 * an engine's modules are measured for a while after somebody who may change the daemon has asked
 * for its "runtime".
 */
#include <jansson.h>

struct daemon;
struct control_viewer;

struct view_info {
	const char *name;
	const char *help; /* what it is, and its parameters */
};
/* All of them; the end has no name. */
extern const struct view_info view_infos[];

/*
 * Makes the view of that name for whoever asks, without what he must not see of others (views.def,
 * SECRET); who NULL: everything. parameters may be NULL. 0: *out is the caller's; -ENOENT: there is
 * no such view, or no such queue pair; -ENODEV: no such HCA or engine; -EAGAIN: not now, ask again;
 * -ENOMEM.
 */
int show(struct daemon *d, const struct control_viewer *who, const char *name,
	 const char *parameters, json_t **out);

/* The same for the control socket (control_config.view; ctx: the daemon): writes the JSON text
 * {"/softhca/NAME": VIEW}, not NUL-terminated. Its length; -errno; -EMSGSIZE: there is no room. */
int show_text(void *ctx, const struct control_viewer *who, const char *name, const char *parameters,
	      char *text, unsigned room);

#endif
