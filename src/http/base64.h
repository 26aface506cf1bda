/* base64.h - the one coding that all output of commands goes through, at the speed of memory where it can be.
 */
#pragma once

#include <stddef.h>

#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes BASE64_LEN(LEN) characters and one byte more, which means nothing. Returns the end of the
 * characters. */
char *base64_encode(char *to, const void *bytes, size_t len);
