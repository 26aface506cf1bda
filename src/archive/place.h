/*
 * place.h - files, links and symlinks put into a directory that is open. What has their name goes, unless it
 * is a directory with something in it. Nothing here follows a symlink.
 */
#pragma once

#include <stdint.h>

#include "archive/dirs.h"

/* All of them: 0 or -errno. */
int place_file(int dir_fd, const char *name, unsigned mode, int *ret_fd);
int place_symlink(int dir_fd, const char *name, const char *target, const struct attrs *attrs);

/* Makes NAME a second name of FROM, or where the file system has no such thing, a copy. */
int place_link(int from_fd, const char *from, int dir_fd, const char *name);

/* NAME becomes a copy of FROM (a plain file or a symlink), with its mode and times. It shows only when it is
 * complete. */
int place_copy(int from_fd, const char *from, int dir_fd, const char *name);

/* Removes the file or the empty directory that stands where something is to be placed. */
int place_clear(int dir_fd, const char *name);

/*
 * Writes LEN bytes at OFFSET of FD, but leaves a hole where they are zeros. *END is the highest byte written
 * so far, plus one: a file that ends in a hole has to be given its size.
 */
int place_write(int fd, const char *bytes, size_t len, uint64_t offset, uint64_t *end);

/* Owner, mode and times of a new plain file. The mode only where open() could not set it. */
int place_finish(int fd, const struct attrs *attrs);
