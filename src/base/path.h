/* path.h - lexical work on absolute paths. What a path *means* is decided later, by the kernel, inside the
 * sandbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PATH_LIMIT 4096 /* bytes with the NUL, the kernel's PATH_MAX */

/*
 * API 4.1: resolves PATH (relative ones below BASE) by text alone: drops empty and "." parts, ".." removes
 * the part before it. OUT gets an absolute path without a trailing slash ("/" for the root itself).
 * -ENAMETOOLONG when it does not fit, -EINVAL when it holds a NUL byte.
 */
int path_resolve(const char *base, const char *path, size_t len, char out[PATH_LIMIT]);

/* Whether the resolved PATH is DIR itself or below it. DIR carries no trailing slash. */
bool path_is_within(const char *path, const char *dir);
