#include "unit.h"

#include "cli/sse.h"

#include <stdio.h>

/* Events as text: "name(data) name(data) ". */
static int note(void *ctx, const struct sse_event *event)
{
	return buf_addf(ctx, "%s(%s) ", event->name, event->data);
}

static void assert_events_in_pieces(const char *stream, size_t len, size_t cut, const char *expected)
{
	auto_buf struct buf seen = buf_with_cap(4096);
	struct sse s;

	sse_init(&s);
	ASSERT_OK(sse_feed(&s, stream, cut, note, &seen));
	ASSERT_OK(sse_feed(&s, stream + cut, len - cut, note, &seen));
	sse_done(&s);
	ASSERT_STR(buf_text(&seen), expected);
}

/* Whole, and cut in two at every byte. */
static void assert_events(const char *stream, const char *expected)
{
	size_t len = strlen(stream);

	for (size_t cut = 0; cut <= len; cut++)
		assert_events_in_pieces(stream, len, cut, expected);
}

TEST(sse_reads_what_the_exec_route_sends)
{
	assert_events("event: stdout\ndata: aGkK\n\nevent: exit\ndata: {\"exit_code\":3}\n\n",
		      "stdout(aGkK) exit({\"exit_code\":3}) ");
}

TEST(sse_takes_any_line_end)
{
	assert_events("event: a\rdata: 1\r\revent: b\r\ndata: 2\r\n\r\nevent: c\ndata: 3\n\n",
		      "a(1) b(2) c(3) ");
	assert_events("data: 1\r\n\rdata: 2\n\r\n", "message(1) message(2) ");
}

TEST(sse_joins_data_lines_with_a_line_feed)
{
	assert_events("data: one\ndata:two\ndata\ndata:  four\n\n", "message(one\ntwo\n\n four) ");
}

TEST(sse_skips_comments_and_fields_it_does_not_know)
{
	assert_events(": keepalive\n\nid: 7\nretry: 5\nevents: x\ndata: 1\n\n", "message(1) ");
}

TEST(sse_drops_events_without_data_and_their_names)
{
	assert_events("event: ghost\n\ndata: 1\n\n", "message(1) ");
	assert_events("event: empty\ndata\n\n", "empty() ");
}

TEST(sse_drops_what_the_stream_did_not_finish)
{
	assert_events("data: 1\n\ndata: 2\n", "message(1) ");
}

TEST(sse_allows_a_byte_order_mark_at_the_very_start_only)
{
	assert_events("\xEF\xBB\xBF"
		      "data: 1\n\n\xEF\xBB\xBF"
		      "data: 2\n\n",
		      "message(1) ");
}

TEST(sse_refuses_an_event_without_end)
{
	auto_buf struct buf seen = buf_with_cap(4096);
	char line[1024];
	struct sse s;
	int r = 0;

	snprintf(line, sizeof line, "data: %0*d\n", 1000, 0);
	sse_init(&s);
	for (int i = 0; r == 0 && i < 2000; i++)
		r = sse_feed(&s, line, strlen(line), note, &seen);
	ASSERT_EQ(r, -E2BIG);
	sse_done(&s);
	ASSERT_EQ(seen.len, 0);
}

static int refuse(void *ctx, const struct sse_event *event)
{
	(void)ctx;
	(void)event;
	return -EPIPE;
}

TEST(sse_returns_what_its_handler_returned)
{
	static const char stream[] = "data: 1\n\n";
	struct sse s;

	sse_init(&s);
	ASSERT_EQ(sse_feed(&s, stream, sizeof stream - 1, refuse, NULL), -EPIPE);
	sse_done(&s);
}

TESTS(RUN(sse_reads_what_the_exec_route_sends), RUN(sse_takes_any_line_end),
      RUN(sse_joins_data_lines_with_a_line_feed), RUN(sse_skips_comments_and_fields_it_does_not_know),
      RUN(sse_drops_events_without_data_and_their_names), RUN(sse_drops_what_the_stream_did_not_finish),
      RUN(sse_allows_a_byte_order_mark_at_the_very_start_only), RUN(sse_refuses_an_event_without_end),
      RUN(sse_returns_what_its_handler_returned))
