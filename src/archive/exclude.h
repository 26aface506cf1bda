/*
 * exclude.h - which paths an archive leaves out: what `tar --exclude=./ENTRY` would.
 *
 * An entry is a shell pattern anchored at the root of the archive. Its wildcards match '/' too, and what it
 * matches is left out together with all that is below.
 */
#pragma once

#include <stdbool.h>

/* Prepares one entry in place: leading '/' and "./" and trailing '/' go. NULL when nothing is left ("", ".").
 */
char *exclude_clean(char *entry);

/* Whether PATH ("a/b", relative to the root, without a slash at its end) is matched by one of the COUNT
 * cleaned entries. */
bool exclude_matches(char *const *entries, unsigned count, const char *path);
