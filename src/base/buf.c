#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct buf buf_with_cap(size_t cap)
{
	return (struct buf){.cap = cap};
}

void buf_done(struct buf *b)
{
	free(b->start);
	*b = (struct buf){.cap = b->cap};
}

void buf_reset(struct buf *b)
{
	buf_done(b);
}

void buf_clear(struct buf *b)
{
	b->data = b->start;
	b->len = 0;
}

void buf_take(struct buf *b, size_t len)
{
	len = MIN(len, b->len);
	b->len -= len;
	b->data = b->len ? b->data + len : b->start;
}

/* Makes sure that NEED bytes in all fit behind data: by moving what is there to the start, or by growing. */
static void make_room(struct buf *b, size_t need)
{
	size_t before = (size_t)(b->data - b->start);

	if (b->start && before + need <= b->room) return;
	if (b->start && need <= b->room && before >= b->len) {
		memmove(b->start, b->data, b->len);
		b->data = b->start;
		return;
	}
	size_t room = MAX(b->room * 2, (size_t)256);
	if (room < need) room = need;
	char *bigger = mem_grow(NULL, room, 1);
	if (b->len) memcpy(bigger, b->data, b->len);
	free(b->start);
	b->start = b->data = bigger;
	b->room = room;
}

char *buf_reserve(struct buf *b, size_t len)
{
	if (len > b->cap || b->len > b->cap - len) return NULL;
	make_room(b, b->len + len + 1);
	return b->data + b->len;
}

void buf_grew(struct buf *b, size_t len)
{
	assert(b->len + len <= b->cap);
	b->len += len;
}

int buf_add(struct buf *b, const void *bytes, size_t len)
{
	char *at = buf_reserve(b, len);

	if (!at) return -E2BIG;
	if (len) memcpy(at, bytes, len);
	buf_grew(b, len);
	return 0;
}

int buf_add_text(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text));
}

int buf_addf(struct buf *b, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0) return -EINVAL;
	char *at = buf_reserve(b, (size_t)len);
	if (!at) return -E2BIG;
	va_start(args, format);
	(void)vsnprintf(at, (size_t)len + 1, format, args);
	va_end(args);
	buf_grew(b, (size_t)len);
	return 0;
}

char *buf_text(struct buf *b)
{
	make_room(b, b->len + 1);
	b->data[b->len] = '\0';
	return b->data;
}
