/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHANGE_H
#define CHANGE_H
/*
 * Changes the configuration of a running daemon: all of it when the file is read again, or one
 * setting. What a running daemon can apply applies at once, without a pause of the data path; the
 * rest of the daemon stays as it is. Control thread, under the daemon's lock.
 */
struct daemon;

/*
 * Reads the configuration that the command line names again, with the rights that the daemon has by
 * now, and applies what can be applied. Settings that were changed one by one return to what the file
 * has. Logs each difference, and whether it needs a restart; a configuration with an error changes
 * nothing. Tells the service manager.
 */
void change_reload(struct daemon *d);

#endif
