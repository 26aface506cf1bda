/*
 * cursor.h - a place in a tree that moves from directory to directory by single steps.
 *
 * Archives name their members by whole paths, but nearly always stay in a directory or go to one near by. So
 * we keep the directory we are in and walk the difference: up by "..", down by name, never through a symlink.
 * No path is ever handed to the kernel whole: their length has no limit.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct cursor {
	int root_fd;     /* borrowed */
	int fd;          /* of the directory it stands in (O_PATH); the root's own number while at the root */
	struct buf path; /* of that directory: "a/b", "" at the root */
};

#define auto_cursor __attribute__((cleanup(cursor_done)))

struct cursor cursor_at_root(int root_fd);
void cursor_done(struct cursor *c);

/* One step down. -ENOENT, -ENOTDIR (a symlink, too), …: the cursor has not moved. */
int cursor_down(struct cursor *c, const char *name, size_t len);

/* One step up; the cursor is not at the root. */
int cursor_up(struct cursor *c);

/*
 * Moves to the directory DIR ("a/b", no empty, "." or ".." parts). Directories that are missing are made with
 * MAKE_MODE, or are an error if that is 0. A failure leaves it somewhere on the way.
 */
int cursor_go(struct cursor *c, const char *dir, size_t len, unsigned make_mode, struct err *e);
