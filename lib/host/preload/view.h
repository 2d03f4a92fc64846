/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_VIEW_H
#define PRELOAD_VIEW_H
/* What the files of lib/host/preload share. Any thread; no locks, no heap. */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Translates a path of the program: `path` itself, or, if we show it, its place in the daemon's
 * tree, written to out. NULL stays NULL.
 */
const char *view_path(const char *path, char out[PATH_MAX]);

/* Is `shown`, the result of view_path(path), a path that we show? */
#define VIEWED(shown, path) ((shown) != (path))

/* Does it lie in the tree? The path must have no links in it. */
bool view_is_tree(const char *path);

/*
 * The reverse, in place: turns a path into the tree into the one that the program knows. Returns
 * the bytes left of n; text need not be terminated.
 */
long view_back(char *text, long n);

/* Does the working directory lie in the tree? Cached until view_cwd_changed(). Keeps errno. */
bool view_cwd_is_tree(void);
void view_cwd_changed(void);

/* Writes the kernel's name of the open file. Returns its length; 0: it has none, or it does not
 * fit. */
size_t view_name_of(int fd, char *name, size_t room);

/* Returned by open functions for ordinary files. */
enum { VIEW_NOT_SPECIAL = -2 };

/*
 * Opens the live attribute at `shown`, a path into the tree: a descriptor of its current text, to
 * be read once from the beginning. flags: those of open(). VIEW_NOT_SPECIAL: an ordinary file; -1
 * with errno: ENODEV (the daemon has died), EACCES (opened for writing).
 */
int view_open_live(const char *shown, int flags);

enum { VIEW_WHERE_IT_IS = -1 };

/*
 * The program is about to read fd at `offset` (or at its position): at the beginning of a live
 * attribute the text is refreshed, as a kernel would generate it anew. Keeps errno.
 */
void view_refresh(int fd, long offset);

/* The same for a descriptor opened relative to another: returns fd itself, or closes it and returns
 * its replacement. */
int view_relive(int fd, int flags);

#endif
