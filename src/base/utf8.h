/* utf8.h - enough of UTF-8 (RFC 3629) to cut a byte stream where no character is split. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * How many bytes at the end of BYTES begin a multi-byte character that is still incomplete: 0 to 3. Bytes
 * that could never become a character are not held back: they count as complete.
 */
size_t utf8_unfinished(const void *bytes, size_t len);

/* Whether BYTES are well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_valid(const void *bytes, size_t len);
