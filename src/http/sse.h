/*
 * sse.h - server-sent events (API.md 1.5) on a response stream: one event is one chunk, written in place.
 *
 * The stream was begun with "text/event-stream". Callers watch http_stream_pending() as with any stream.
 */
#pragma once

#include <stddef.h>

struct exchange;

#define SSE_BYTES_MAX 65536 /* of one event, before base64 */

/* "event: NAME\ndata: BASE64\n\n"; LEN at most SSE_BYTES_MAX. */
void sse_event_base64(struct exchange *x, const char *name, const void *bytes, size_t len);

/*
 * The same with TEXT as it is: JSON or base64, so it holds no line end. NAME may be NULL: no event line
 * then.
 */
void sse_event_text(struct exchange *x, const char *name, const char *text);

/* "data: HEAD BASE64 TAIL\n\n", without the blanks: base64 inside of JSON. No line end in HEAD and TAIL. */
void sse_data_base64(struct exchange *x, const char *head, const void *bytes, size_t len, const char *tail);

/* ": TEXT\n\n", which clients skip. */
void sse_comment(struct exchange *x, const char *text);
