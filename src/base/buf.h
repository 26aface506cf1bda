/*
 * buf.h - bytes whose number somebody else chooses: a growing buffer born with a cap.
 *
 * A refusal (-E2BIG at the cap) leaves the contents as they were. Bytes are taken from the front with
 * buf_take(), which moves an offset and compacts only when that is cheap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data;  /* the first byte not yet taken; NULL while nothing was ever added */
	size_t len;  /* bytes from data on */
	size_t cap;  /* most bytes it may hold */
	char *start; /* of the allocation; private */
	size_t room; /* of the allocation; private */
};

#define auto_buf __attribute__((cleanup(buf_done)))

/* Allocates nothing yet. */
struct buf buf_with_cap(size_t cap);
void buf_done(struct buf *b);

/* 0 or -E2BIG. */
int buf_add(struct buf *b, const void *bytes, size_t len);
int buf_add_text(struct buf *b, const char *text);
int buf_addf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Room for LEN more bytes at the end, to be written in place and then claimed by buf_grew(). NULL at the cap.
 */
char *buf_reserve(struct buf *b, size_t len);
void buf_grew(struct buf *b, size_t len);

/* Drops LEN (at most len) bytes from the front. */
void buf_take(struct buf *b, size_t len);

/* Empties it and keeps the memory for reuse. */
void buf_clear(struct buf *b);

/* Empties it and gives the memory back. */
void buf_reset(struct buf *b);

/* The contents as a C string: adds a NUL that len does not count. Never NULL. Bytes may hold NULs of their
 * own. */
char *buf_text(struct buf *b);
