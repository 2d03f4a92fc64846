/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_VIEW_H
#define PRELOAD_VIEW_H
/* What the files of lib/host/preload share. Any thread; no locks, no heap. */
#include <limits.h>
#include <stdbool.h>

/*
 * Where a path of the program leads: `path` itself, or, if it is one that we show, its place in the
 * daemon's tree, written to out. NULL stays NULL.
 */
const char *view_path(const char *path, char out[PATH_MAX]);

/* Was it one of those? What view_path() returned for path. */
#define VIEWED(shown, path) ((shown) != (path))

/* Does it lie in the tree? A path without links in it. */
bool view_is_tree(const char *path);

/*
 * The other direction, in place: a path into the tree becomes the one that the program knows. Bytes
 * that are left of n; text need not be terminated.
 */
long view_back(char *text, long n);

/* Does the working directory lie in the tree? Asked once, until view_cwd_changed(). errno stays. */
bool view_cwd_is_tree(void);
void view_cwd_changed(void);

/* What opening gives where there is nothing special to open. */
enum { VIEW_NOT_SPECIAL = -2 };

/*
 * A descriptor of the live attribute at `shown`, a path into the tree: its text as it is now, to be
 * read once from the beginning. flags: those of open(). VIEW_NOT_SPECIAL: it is no live attribute,
 * open it; -1 with errno: ENODEV (the daemon has gone), EACCES (to be written).
 */
int view_open_live(const char *shown, int flags);

enum { VIEW_WHERE_IT_IS = -1 };

/*
 * The program is about to read fd at `offset` (or where it is): if that is the beginning of a live
 * attribute its text becomes what it is now, as a kernel writes it anew. errno is kept.
 */
void view_refresh(int fd, long offset);

/* The same of a descriptor, opened relative to another: gives back fd itself or what stands in for
 * it; fd is closed then. */
int view_relive(int fd, int flags);

#endif
