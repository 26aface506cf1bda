/*
 * staging.h - a private directory inside the tree that is restored, so that nothing of an archive shows
 * before all of it has been read. It lies in the tree because only there a rename is sure to stay within one
 * file system (and its quota).
 *
 * A run holds a lock on its staging directory. One without a lock was left by a run that was killed: the next
 * run removes it.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

#define STAGING_NAME_SIZE 40

/* Whether NAME, at the root of a tree, is ours to leave out of archives. */
bool staging_is_name(const char *name);

/* Makes one below ROOT_FD, after removing what is stale. */
int staging_new(int root_fd, char ret_name[STAGING_NAME_SIZE], int *ret_fd, struct err *e);

/* Removes NAME in DIR_FD with all that is below. Goes on as far as it can; the first failure is returned. */
int staging_remove(int dir_fd, const char *name, struct err *e);
