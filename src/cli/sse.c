#include "cli/sse.h"

#include <string.h>

void sse_init(struct sse *s)
{
	*s = (struct sse){
		.line = buf_with_cap(SSE_EVENT_MAX),
		.name = buf_with_cap(SSE_EVENT_MAX),
		.data = buf_with_cap(SSE_EVENT_MAX),
	};
}

void sse_done(struct sse *s)
{
	buf_done(&s->line);
	buf_done(&s->name);
	buf_done(&s->data);
}

/* The first line end in BYTES, or NULL. */
static const char *line_end(const char *bytes, size_t len)
{
	const char *lf = memchr(bytes, '\n', len);
	const char *cr = memchr(bytes, '\r', lf ? (size_t)(lf - bytes) : len);

	return cr ? cr : lf;
}

/* An empty line: the event is complete. */
static int dispatch(struct sse *s, on_sse_event *handle, void *ctx)
{
	int r = 0;

	if (s->has_data) {
		struct sse_event event = {
			.name = s->name.len > 0 ? buf_text(&s->name) : "message",
			.data = buf_text(&s->data),
			.len = s->data.len,
		};
		r = handle(ctx, &event);
	}
	buf_clear(&s->name);
	buf_clear(&s->data);
	s->has_data = false;
	return r;
}

static bool is_field(const char *line, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(line, name, len) == 0;
}

/* One line that is not empty: "field: value", "field:value", "field" or ": comment". */
static int take_field(struct sse *s, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name_len = colon ? (size_t)(colon - line) : len;
	const char *value = colon ? colon + 1 : line + len;
	size_t value_len = (size_t)(line + len - value);
	int r = 0;

	if (value_len > 0 && value[0] == ' ') {
		value++;
		value_len--;
	}
	if (is_field(line, name_len, "event")) {
		buf_clear(&s->name);
		return buf_add(&s->name, value, value_len);
	}
	if (is_field(line, name_len, "data")) {
		if (s->has_data) r = buf_add(&s->data, "\n", 1);
		if (r == 0) r = buf_add(&s->data, value, value_len);
		s->has_data = true;
	}
	return r;
}

static int take_line(struct sse *s, const char *line, size_t len, on_sse_event *handle, void *ctx)
{
	if (!s->begun && len >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
		line += 3;
		len -= 3;
	}
	s->begun = true;
	return len == 0 ? dispatch(s, handle, ctx) : take_field(s, line, len);
}

int sse_feed(struct sse *s, const char *bytes, size_t len, on_sse_event *handle, void *ctx)
{
	const char *end = bytes + len;

	while (bytes < end) {
		const char *stop;
		int r;

		if (s->after_cr && *bytes == '\n') {
			s->after_cr = false;
			bytes++;
			continue;
		}
		s->after_cr = false;
		stop = line_end(bytes, (size_t)(end - bytes));
		if (!stop) return buf_add(&s->line, bytes, (size_t)(end - bytes));
		if (s->line.len == 0) { /* the whole line is here: no copy */
			r = take_line(s, bytes, (size_t)(stop - bytes), handle, ctx);
		} else {
			r = buf_add(&s->line, bytes, (size_t)(stop - bytes));
			if (r == 0) r = take_line(s, s->line.data, s->line.len, handle, ctx);
			buf_clear(&s->line);
		}
		if (r < 0) return r;
		s->after_cr = *stop == '\r';
		bytes = stop + 1;
	}
	return 0;
}
