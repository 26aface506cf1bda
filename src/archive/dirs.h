/*
 * dirs.h - modes, times and owners of directories, which must wait until all that belongs into them is in
 * place.
 *
 * They wait in a file without a name, not in memory: an archive may have any number of directories.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "archive/verdict.h"
#include "base/buf.h"

struct attrs {
	unsigned mode; /* 07777 */
	bool owned;    /* uid and gid are to be set */
	bool timed;    /* mtime is to be set */
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
};

struct dirs {
	int fd;
	size_t size; /* of what was written to fd */
	struct buf pending;
	bool tight; /* some directory gets a mode that shuts its owner out */
};

#define auto_dirs __attribute__((cleanup(dirs_done)))

/* The file is made in DIR_FD, and has no name any more when this returns. */
int dirs_init(struct dirs *d, int dir_fd, struct err *e);
void dirs_done(struct dirs *d);

/* PATH from the root, "a/b"; never the root itself. */
int dirs_add(struct dirs *d, const struct buf *path, const struct attrs *attrs, struct err *e);

/* Sets them all below ROOT_FD; where one path was added twice the last wins. What cannot be set is a warning.
 */
void dirs_apply(struct dirs *d, int root_fd, struct verdict *v);

/* Sets ATTRS of NAME, a directory in DIR_FD, but with MODE. 0 or the -errno of the first part that could not
 * be set. */
int attrs_set(int dir_fd, const char *name, const struct attrs *attrs, unsigned mode);
