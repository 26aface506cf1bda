/*
 * merge.h - a staged tree takes its place in the old one, by renames.
 *
 * Directories merge; files and links replace what has their name; a directory that the old tree does not have
 * moves as a whole. A file never replaces a directory that holds something, and a directory never replaces a
 * symlink.
 */
#pragma once

#include "base/err.h"

/* Whether merge_apply() will be able to: looks at everything, changes nothing. */
int merge_check(int staging_fd, int root_fd, struct err *e);

/* What remains of the staged tree afterwards is empty directories. A failure may leave a part of it in place.
 */
int merge_apply(int staging_fd, int root_fd, struct err *e);
