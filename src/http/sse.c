#include "http/sse.h"

#include <assert.h>
#include <string.h>

#include "http/base64.h"
#include "http/http.h"

static char *put(char *at, const char *text, size_t len)
{
	memcpy(at, text, len);
	return at + len;
}

static char *put_lines_up_to_data(char *at, const char *name)
{
	if (name) {
		at = put(at, "event: ", 7);
		at = put(at, name, strlen(name));
		at = put(at, "\n", 1);
	}
	return put(at, "data: ", 6);
}

static size_t lines_room(const char *name, size_t data_len)
{
	return (name ? 7 + strlen(name) + 1 : 0) + 6 + data_len + 2;
}

void sse_event_base64(struct exchange *x, const char *name, const void *bytes, size_t len)
{
	assert(len <= SSE_BYTES_MAX);
	size_t whole = lines_room(name, BASE64_LEN(len));
	char *at = put_lines_up_to_data(http_stream_reserve(x, whole), name);

	at = base64_encode(at, bytes, len);
	(void)put(at, "\n\n", 2);
	http_stream_commit(x, whole);
}

void sse_data_base64(struct exchange *x, const char *head, const void *bytes, size_t len, const char *tail)
{
	assert(len <= SSE_BYTES_MAX);
	size_t head_len = strlen(head), tail_len = strlen(tail);
	size_t whole = lines_room(NULL, head_len + BASE64_LEN(len) + tail_len);
	char *at = put_lines_up_to_data(http_stream_reserve(x, whole), NULL);

	at = put(at, head, head_len);
	at = base64_encode(at, bytes, len);
	at = put(at, tail, tail_len);
	(void)put(at, "\n\n", 2);
	http_stream_commit(x, whole);
}

void sse_event_text(struct exchange *x, const char *name, const char *text)
{
	size_t len = strlen(text), whole = lines_room(name, len);
	char *at = put_lines_up_to_data(http_stream_reserve(x, whole), name);

	assert(!memchr(text, '\n', len));
	at = put(at, text, len);
	(void)put(at, "\n\n", 2);
	http_stream_commit(x, whole);
}

void sse_comment(struct exchange *x, const char *text)
{
	size_t len = strlen(text);
	char *at = http_stream_reserve(x, len + 4);

	at = put(at, ": ", 2);
	at = put(at, text, len);
	(void)put(at, "\n\n", 2);
	http_stream_commit(x, len + 4);
}
