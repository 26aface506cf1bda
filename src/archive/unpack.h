/*
 * unpack.h - an archive becomes files below a root, all of it or nothing.
 *
 * Theory of operation: a stranger wrote the archive. libarchive reads it (v7, ustar, GNU, pax; plain or
 * compressed) and each member is judged before anything is done with it: no absolute name, no "..", no
 * device, no way through a symlink. Members are made in a staging directory (staging.h), where nothing of the
 * old tree can be met. Only after the end mark of the archive has been seen is the staged tree merged into
 * the old one (merge.h), first looking at everything, then renaming. Modes and times of directories come last
 * (dirs.h). Whatever goes wrong before the merge leaves the old tree as it was.
 */
#pragma once

#include "archive/verdict.h"

/* Reads the archive from IN_FD to its end. ROOT is made if it is missing. */
void unpack(const char *root, int in_fd, struct verdict *v);
