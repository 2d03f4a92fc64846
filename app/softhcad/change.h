/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHANGE_H
#define CHANGE_H
/*
 * Changes the configuration of a running daemon: all of it when the file is read again, or one
 * setting. What a running daemon can apply applies at once, without a pause of the data path except
 * for addresses (lcores_pause()); the rest of the daemon stays as it is. Control thread, under the
 * daemon's lock.
 */
#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct control_changer;
struct control_setting;
struct config_error;

/*
 * Reads the configuration that the command line names again, with the rights that the daemon has
 * now, and applies what can be applied. Settings that were changed one by one return to what the
 * file has. Logs each difference, and whether it needs a restart; a configuration with an error
 * changes nothing. Tells the service manager.
 */
void change_reload(struct daemon *d);

/* The same at the request of *who, answered once the HCAs that it adds or removes are in place or
 * gone; as control_settings_ops.reload; ctx: struct daemon. 0 with the number of differences and
 * what needs a restart; -EAGAIN: ask again; -EINVAL: nothing has changed; -ENOMEM; another -errno:
 * an HCA could not be added; with the reason. */
int change_reload_ask(void *ctx, const struct control_changer *who, uint32_t *ticket, char *text,
		      unsigned bytes);

/* The index-th setting as it applies now. 0, -ENOENT. ctx: struct daemon; for
 * control_settings_ops. */
int change_read(void *ctx, uint32_t index, struct control_setting *out);

/* Changes one setting, "SECTION.KEY=VALUE", and logs who did it. 0 with what has changed in text;
 * -EINVAL: it is wrong, -EBUSY: it needs a restart, with the reason. The same. */
int change_one(void *ctx, const struct control_changer *who, const char *assignment, char *text,
	       unsigned bytes);

/* Adds an HCA to the configuration, for addition_turn() to create, and logs who did it. 0; -EINVAL
 * or -EPERM with *error. */
int change_add(struct daemon *d, const struct control_changer *who, const char *hca,
	       const char *settings, struct config_error *error);

#endif
