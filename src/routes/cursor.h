/*
 * cursor.h - places in the log of one process or terminal, as clients get them (SEMANTICS 4.2): opaque to
 * them, URL-safe, and of no use with any other log. Pure.
 *
 * The text is base64url("v1." + base64url(store) + "." + seq) and means "after event SEQ". STORE names the
 * log: ids alone would not do, because a terminal's name may be used again.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CURSOR_STORE_MAX 160 /* bytes */
#define CURSOR_MAX       328 /* characters of the longest one, and a NUL */

/* STORE of a log: the id, which is cut at its end when it is too long, and the pid inside. */
void cursor_store(const char *id, uint32_t pid, char store[CURSOR_STORE_MAX + 1]);

void cursor_encode(const char *store, uint64_t seq, char text[CURSOR_MAX]);

/* -EINVAL: cursor_encode() never made this. Whether STORE is the right one is the caller's to see. */
int cursor_decode(const char *text, size_t len, char store[CURSOR_STORE_MAX + 1], uint64_t *ret_seq);
