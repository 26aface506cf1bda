/*
 * pack.h - a tree becomes an archive that every client accepts (ustar.h says which dialect).
 *
 * Directories, plain files and symlinks; a hard link is written as a file of its own; FIFOs, sockets and
 * devices are left out, and so is whatever this program stages at the root. The tree may change meanwhile: a
 * file that has shrunk is filled up with zeros, one that has grown is cut, one that has vanished is left out,
 * each with a warning. What cannot be read is a failure, but the rest is still written; a file too large for
 * the dialect ends the run.
 */
#pragma once

#include "archive/verdict.h"

/* EXCLUDES are changed in place (exclude.h). The archive is whole only if V has no failure in the end. */
void pack(const char *root, char **excludes, unsigned count, int out_fd, struct verdict *v);
