/* Whatever a stream holds, and wherever it is cut: the same events, none larger than the limit. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cli/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int note(void *ctx, const struct sse_event *event)
{
	assert(event->len <= SSE_EVENT_MAX);
	assert(event->data[event->len] == '\0');
	return buf_addf(ctx, "%zu %s %s\n", event->len, event->name, event->data);
}

static int events_of(const char *bytes, size_t len, size_t piece, struct buf *ret)
{
	struct sse s;
	int r = 0;

	sse_init(&s);
	for (size_t at = 0; r == 0 && at < len; at += piece)
		r = sse_feed(&s, bytes + at, len - at < piece ? len - at : piece, note, ret);
	sse_done(&s);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	auto_buf struct buf whole = buf_with_cap((size_t)8 << 20), cut = buf_with_cap((size_t)8 << 20);
	int r = events_of((const char *)bytes, len, len + 1, &whole);

	assert(events_of((const char *)bytes, len, 1 + len % 5, &cut) == r);
	assert(whole.len == cut.len && (whole.len == 0 || memcmp(whole.data, cut.data, cut.len) == 0));
	return 0;
}
