/*
 * walk.h - all of a tree, by descriptors: no limit on the length of a path, a fixed number of descriptors at
 * any depth.
 *
 * Theory of operation: a directory is read to its end before any of its children is entered. Its files are
 * handed out while it is read, the names of its directories are put on a stack and handed out after. So one
 * buffer for directory entries serves all levels, no position in a directory ever has to be found again, and
 * each directory comes before what is in it. The descriptors of the uppermost levels stay open; from a deeper
 * level the way up is "..".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

enum walk_kind {
	WALK_FILE,      /* anything but a directory */
	WALK_DIRECTORY, /* walk_enter() goes in; without it, it and all below are passed over */
	WALK_LEFT,      /* all of a directory that was entered has been seen; FD is its parent again */
	WALK_END,
};

struct walk_level;

struct walk {
	int fd;             /* of the directory that holds the item */
	const char *name;   /* of the item in FD */
	unsigned char type; /* DT_… of a WALK_FILE */
	struct buf path;    /* of the item, from the root: "a/b", never a slash at the end; NUL-terminated */
	/* private from here */
	struct buf names; /* directories still to be handed out, all levels, each with its NUL */
	struct walk_level *levels;
	size_t depth; /* of the current directory; the root is 0 */
	size_t levels_room;
	char *entries; /* of the current directory, as the kernel gave them */
	size_t entries_len, entries_at;
	bool reading; /* the current directory has not been read to its end */
	bool lost;    /* its parent cannot be found again */
};

#define auto_walk __attribute__((cleanup(walk_done)))

/* Takes ROOT_FD, open for reading, in every case. */
void walk_init(struct walk *w, int root_fd);
void walk_done(struct walk *w);

/*
 * The next item. After a failure the walk may go on: the directory that could not be read counts as read to
 * its end, and where the way up is lost the next item is WALK_END.
 */
int walk_next(struct walk *w, enum walk_kind *ret, struct err *e);

/*
 * Goes into the directory that walk_next() has just named; RET_ST (NULL is fine) is what it is. Symlinks are
 * not followed. After it, FD is the directory itself. A failure leaves the walk where it was.
 */
int walk_enter(struct walk *w, struct stat *ret_st, struct err *e);
