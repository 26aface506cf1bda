/*
 * sse.h - server-sent events out of a byte stream, as a pure parser: bytes in, events out, in pieces of any
 * size.
 *
 * Lines may end in LF, CR or CRLF, also when a piece ends between the two. Comments and unknown fields are
 * skipped; an event without data is dropped; what stands after the last empty line when the stream ends is no
 * event. (WHATWG HTML, "Server-sent events".)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define SSE_EVENT_MAX ((size_t)1 << 20) /* bytes of one event's data, and of one line */

struct sse_event {
	const char *name; /* "message" when the stream named none */
	const char *data; /* NUL-terminated; may hold NULs of its own */
	size_t len;
};

/* The event is valid during the call. A negative answer ends the feeding and is returned by sse_feed(). */
typedef int on_sse_event(void *ctx, const struct sse_event *event);

struct sse {
	struct buf line, name, data;
	bool after_cr; /* a LF that comes first belongs to the CR before it */
	bool has_data; /* the event has a data field, perhaps an empty one */
	bool begun;    /* the first line was seen: a byte order mark may stand only there */
};

void sse_init(struct sse *s);
void sse_done(struct sse *s);

/* 0; -E2BIG: a line or an event is larger than SSE_EVENT_MAX; or what HANDLE returned. After a failure:
 * sse_done(). */
int sse_feed(struct sse *s, const char *bytes, size_t len, on_sse_event *handle, void *ctx);
