/*
 * multipart.c - forms are strangers' bytes. The first line is the content type, the rest the body. Whatever
 * it is: the parts that come out of it in one piece are those that come out byte by byte.
 */
#include "http/multipart.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 65536

/* What was told, as text: a name, its data, its end. */
struct told {
	size_t len;
	char text[ROOM];
};

static void tell(struct told *t, char what, const void *bytes, size_t len)
{
	if (t->len + len + 1 > sizeof t->text) return;
	if (what) t->text[t->len++] = what;
	memcpy(t->text + t->len, bytes, len);
	t->len += len;
}

static void on_part(void *ctx, const char *name)
{
	tell(ctx, 'N', name, strlen(name));
	tell(ctx, ':', "", 0);
}

static void on_data(void *ctx, const void *bytes, size_t len)
{
	if (len == 0) abort();
	tell(ctx, '\0', bytes, len);
}

static void on_part_end(void *ctx)
{
	tell(ctx, ';', "", 0);
}

static const struct multipart_events events = {
	.on_part = on_part, .on_data = on_data, .on_part_end = on_part_end};

/* -1: broken; otherwise whether it is complete. */
static int run(const char *type, const uint8_t *body, size_t len, size_t step, struct told *told)
{
	static struct multipart m;

	told->len = 0;
	if (multipart_init(&m, type, &events, told) < 0) return -1;
	for (size_t at = 0; at < len; at += step) {
		if (multipart_feed(&m, body + at, len - at < step ? len - at : step) < 0) return -1;
	}
	return multipart_is_complete(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct told whole, bytewise;
	const uint8_t *line_end = memchr(data, '\n', size);
	char type[512];
	size_t type_len = line_end ? (size_t)(line_end - data) : size;
	const uint8_t *body = line_end ? line_end + 1 : data + size;
	size_t len = size - (size_t)(body - data);
	int r;

	if (type_len >= sizeof type || len > ROOM / 4) return 0;
	memcpy(type, data, type_len);
	type[type_len] = '\0';
	r = run(type, body, len, len + 1, &whole);
	if (run(type, body, len, 1, &bytewise) != r) abort();
	if (whole.len != bytewise.len || memcmp(whole.text, bytewise.text, whole.len) != 0) abort();
	return 0;
}
