/* Connections: what strangers do to them, limits, ends. */
#include "fixture.h"

#define GET_HELLO "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"

/* TEXT gets STATUS as JSON, the connection's end, and no request reached the handler. */
static void expect_refused(const char *text, const char *status)
{
	char line[64];
	unsigned before = fx.counts[REQUESTS];
	auto_buf struct buf got = client_ask(text, NULL);

	(void)snprintf(line, sizeof line, "HTTP/1.1 %s ", status);
	if (strncmp(buf_text(&got), line, strlen(line)) != 0) fail_msg("'%s' got '%s'", text, buf_text(&got));
	HAS(got, "Connection: close\r\n");
	HAS(got, "{\"error\":\"");
	HAS(got, "\"code\":\"invalid_request\"}");
	ASSERT_EQ(fx.counts[REQUESTS], before);
}

TEST(malformed_heads_are_answered_and_closed)
{
	fixture_start(NULL);
	expect_refused("\x16\x03\x01\x02\x01", "400");
	expect_refused("garbage\r\n\r\n", "400");
	expect_refused("GET /hello HTTP/1.1\nHost: a\n\n", "400");
	expect_refused("GET /hello HTTP/1.1\r\nHost: a\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n", "400");
	expect_refused("GET /hello HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "400");
	expect_refused("GET /hello HTTP/1.1\r\n\r\n", "400");
	expect_refused("GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400");
	expect_refused("GET hello HTTP/1.1\r\nHost: a\r\n\r\n", "400");
	expect_refused("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "400");
	expect_refused("GET  /hello HTTP/1.1\r\nHost: a\r\n\r\n", "400");
	expect_refused("GET /hello HTTP/1.1 \r\nHost: a\r\n\r\n", "505");
	expect_refused("GET /hello\r\n\r\n", "505");
	expect_refused("GET /hello HTTP/2.0\r\nHost: a\r\n\r\n", "505");
	expect_refused("GET /hello HTTP/1.7\r\nHost: a\r\n\r\n", "505");
	expect_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505");
	expect_refused("FROB /hello HTTP/1.1\r\nHost: a\r\n\r\n", "501");
	expect_refused("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", "501");
	fixture_stop();
}

TEST(smuggling_probes_are_refused)
{
#define POST "POST /echo HTTP/1.1\r\nHost: a\r\n"
	fixture_start(NULL);
	expect_refused(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400");
	expect_refused(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "400");
	expect_refused(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde", "400");
	expect_refused(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", "400");
	expect_refused(POST "Content-Length: 5, 5\r\n\r\nabcde", "400");
	expect_refused(POST "Content-Length: +5\r\n\r\nabcde", "400");
	expect_refused(POST "Content-Length: 0x5\r\n\r\nabcde", "400");
	expect_refused(POST "Content-Length: -1\r\n\r\n", "400");
	expect_refused(POST "Content-Length:\r\n\r\n", "400");
	expect_refused(POST "Content-Length: 99999999999999999999999\r\n\r\n", "400");
	expect_refused(POST "Content-Length : 5\r\n\r\nabcde", "400");
	expect_refused(POST "Content-Length: 1\r\n 5\r\n\r\nabcde", "400");
	expect_refused(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501");
	expect_refused(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501");
	expect_refused(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "400");
	expect_refused(POST "Transfer-Encoding: identity\r\n\r\n", "501");
	expect_refused(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", "501");
	expect_refused(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		       "400");
	expect_refused(POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n", "501");
	expect_refused("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400");
	expect_refused("GET /hello HTTP/1.1\r\nHost: a\r\nX: \rContent-Length: 40\r\n\r\n", "400");
	fixture_stop();
}

TEST(malformed_chunks_end_the_request)
{
	static const char *const bodies[] = {"g\r\n",
					     "0x5\r\nabcde\r\n0\r\n\r\n",
					     "-1\r\n",
					     "5\r\nabcdeX\r\n",
					     " 5\r\nabcde\r\n",
					     "fffffffffffffffff\r\n",
					     "\r\n\r\n",
					     "5\nabcde\r\n0\r\n\r\n",
					     "5\r\nabcde\n0\r\n\r\n",
					     "5\rabcde\r\n0\r\n\r\n",
					     "5 ;\nx\r\nabcde\r\n0\r\n\r\n",
					     "0\r\nX: a\rb\r\n\r\n",
					     "0\r\nX: a\nb: c\r\n\r\n",
					     "0\r\n\n",
					     "0\r\n X: y\r\n\r\n",
					     "5;a\rb\r\nabcde\r\n0\r\n\r\n",
					     "0\r\r\n",
					     "0\r\n\rX",
					     "0\n\n",
					     "5 \r\nabcde\r\n",
					     "0\r\nX: a\r\n b\r\n\r\n",
					     "0\r\nX : a\r\n\r\n"};

	fixture_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		auto_buf struct buf request = buf_with_cap(1000);

		(void)buf_addf(&request, POST "Transfer-Encoding: chunked\r\n\r\n%s", bodies[i]);
		auto_buf struct buf got = client_ask(buf_text(&request), "\"}");
		if (strncmp(buf_text(&got), "HTTP/1.1 400 ", 13) != 0)
			fail_msg("%zu got '%s'", i, buf_text(&got));
		ASSERT_TRUE(fixture_wait(GONE, (unsigned)i + 1));
	}
	fixture_stop();
}

TEST(heads_and_trailers_beyond_the_limit_get_431)
{
	static const char trailer[] =
		"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n";
	auto_buf struct buf request = buf_with_cap(1 << 20);

	fixture_start(NULL);
	(void)buf_add_text(&request, "GET /hello HTTP/1.1\r\nHost: a\r\nX: ");
	while (request.len < 20000)
		(void)buf_add_text(&request, "yyyyyyyyyy");
	expect_refused(buf_text(&request), "431");
	buf_clear(&request);
	(void)buf_add_text(&request, "GET /hello HTTP/1.1\r\nHost: a\r\n");
	for (int i = 0; i < 300; i++)
		(void)buf_add_text(&request, "a:b\r\n");
	expect_refused(buf_text(&request), "431");
	buf_clear(&request);
	(void)buf_add_text(&request, POST "Transfer-Encoding: chunked\r\n\r\n0\r\n");
	while (request.len < 200000)
		(void)buf_add_text(&request, trailer);
	auto_buf struct buf got = client_ask(buf_text(&request), NULL);
	HAS(got, "HTTP/1.1 431 ");
	fixture_stop();
}

TEST(a_pipeline_is_answered_in_order)
{
	fixture_start(NULL);
	auto_buf struct buf got =
		client_ask("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n\r\n"
			   "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none"
			   "GET /smallfile HTTP/1.1\r\nHost: a\r\n\r\n"
			   "POST /slowsum HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na"
			   "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET_HELLO,
			   NULL);
	const char *one = memmem(got.data, got.len, "\r\n\r\none", 7);
	const char *file = memmem(got.data, got.len, "HTTP/1.1 206", 12);
	const char *sum = memmem(got.data, got.len, "\r\n\r\n97", 6);
	const char *hello = memmem(got.data, got.len, "\r\n\r\nhello", 9);

	ASSERT_TRUE(one && file && sum && hello && one < file && file < sum && sum < hello);
	ASSERT_EQ(fx.counts[REQUESTS], 5); /* none after "close" */
	fixture_stop();
}

TEST(a_head_may_come_byte_by_byte)
{
	fixture_start(NULL);
	auto_close int fd = client_connect();
	auto_buf struct buf got = buf_with_cap(1 << 20);

	for (const char *at = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz"; *at; at++)
		client_send(fd, (char[]){*at, '\0'});
	ASSERT_OK(client_read(fd, &got, "\r\n\r\nxyz"));
	fixture_stop();
}

TEST(a_client_that_closed_only_its_half_gets_a_whole_answer)
{
	static const char *const requests[] = {
		GET_HELLO, GET_HELLO GET_HELLO, "GET /file HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"};

	fixture_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		auto_close int fd = client_connect();
		auto_buf struct buf got = buf_with_cap(64u << 20);

		client_send(fd, requests[i]);
		shutdown(fd, SHUT_WR);
		ASSERT_OK(client_read(fd, &got, NULL));
		HAS(got, "HTTP/1.1 200 OK");
		if (i == 1) HAS(got, "helloHTTP/1.1 200 OK");
		if (i == 2) ASSERT_TRUE(got.len > FILE_LEN - 3);
	}
	fixture_stop();
}

TEST(a_request_that_ends_in_its_middle_is_told_so)
{
	static const char *const requests[] = {
		"GET /hello HT", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhi",
		"POST /sum HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi"};

	fixture_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		auto_close int fd = client_connect();
		auto_buf struct buf got = buf_with_cap(1 << 20);

		client_send(fd, requests[i]);
		shutdown(fd, SHUT_WR);
		ASSERT_OK(client_read(fd, &got, NULL));
		HAS(got, "HTTP/1.1 400 ");
		HAS(got, "The request ends in the middle");
	}
	ASSERT_TRUE(fixture_wait(GONE, 2));
	fixture_stop();
}

static void ask_and_leave(const char *request, bool reset)
{
	const struct linger now = {.l_onoff = 1};
	unsigned before = fx.counts[REQUESTS];
	auto_close int fd = client_connect();

	client_send(fd, request);
	ASSERT_TRUE(fixture_wait(REQUESTS, before + 1));
	if (reset) (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

TEST(a_client_that_leaves_is_noticed_in_every_state)
{
	fixture_start(NULL);
	ask_and_leave("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n", false);
	ASSERT_TRUE(fixture_wait(GONE, 1));
	ask_and_leave("GET /silent HTTP/1.1\r\nHost: a\r\n\r\nmore input that nobody reads", false);
	ASSERT_TRUE(fixture_wait(GONE, 2));
	ask_and_leave("GET /never HTTP/1.1\r\nHost: a\r\n\r\n", true);
	ASSERT_TRUE(fixture_wait(GONE, 3));
	ask_and_leave("POST /never HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", true);
	ASSERT_TRUE(fixture_wait(GONE, 4));
	ask_and_leave("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", false);
	ASSERT_TRUE(fixture_wait(GONE, 5));
	ask_and_leave("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n", false);
	ASSERT_TRUE(fixture_wait(GONE, 6));
	fixture_stop();
}

TEST(slow_senders_are_cut_off_and_told_where_they_had_begun)
{
	const struct http_limits limits = {.head_max = 16384,
					   .head_timeout_ms = 50,
					   .idle_timeout_ms = 50,
					   .body_idle_timeout_ms = 50,
					   .connections_max = 10};

	fixture_start(&limits);
	auto_buf struct buf nothing = client_ask("", NULL);
	ASSERT_EQ(nothing.len, 0);
	auto_buf struct buf head = client_ask("GET /hello HTTP/1.1\r\nHo", NULL);
	HAS(head, "HTTP/1.1 408 ");
	auto_buf struct buf body =
		client_ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", NULL);
	HAS(body, "HTTP/1.1 408 ");
	ASSERT_EQ(fx.counts[GONE], 1);
	/* Answered, kept, closed without a word. */
	auto_buf struct buf idle = client_ask(GET_HELLO, NULL);
	ASSERT_MEM(idle.data + idle.len - 5, "hello", 5);
	auto_buf struct buf ignored =
		client_ask("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", NULL);
	ASSERT_MEM(ignored.data + ignored.len - 5, "hello", 5);
	fixture_stop();
}

TEST(a_client_that_never_reads_is_cut_off_when_a_limit_says_so)
{
	const struct http_limits limits = {
		.head_max = 16384, .write_idle_timeout_ms = 50, .connections_max = 10};

	fixture_start(&limits);
	auto_close int fd = client_connect();
	client_send(fd, "GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
	ASSERT_TRUE(fixture_wait(GONE, 1));
	auto_close int other = client_connect();
	client_send(other, "GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
	ASSERT_TRUE(fixture_wait(DONE, 2));
	fixture_stop();
}

TEST(connections_above_the_limit_are_told)
{
	const struct http_limits limits = {.head_max = 16384, .connections_max = 2};
	auto_buf struct buf got = buf_with_cap(1 << 20);

	fixture_start(&limits);
	auto_close int one = client_connect(), two = client_connect();
	client_send(one, GET_HELLO);
	ASSERT_OK(client_read(one, &got, "hello"));
	client_send(two, GET_HELLO);
	buf_clear(&got);
	ASSERT_OK(client_read(two, &got, "hello"));
	auto_buf struct buf third = client_ask(GET_HELLO, NULL);
	HAS(third, "HTTP/1.1 503 ");
	HAS(third, "\"code\":\"capacity_exceeded\"");
	buf_clear(&got);
	client_send(one, GET_HELLO); /* and those we have are not disturbed */
	ASSERT_OK(client_read(one, &got, "hello"));
	fixture_stop();
}

TEST(draining_ends_idle_connections_and_lets_requests_finish)
{
	auto_buf struct buf got = buf_with_cap(1 << 20);

	fixture_start(NULL);
	auto_close int idle = client_connect(), busy = client_connect();
	client_send(idle, GET_HELLO);
	ASSERT_OK(client_read(idle, &got, "hello"));
	client_send(busy, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
	ASSERT_TRUE(fixture_wait(REQUESTS, 2));
	fixture_order(ORDER_DRAIN);
	ASSERT_OK(client_read(idle, &got, NULL));
	ASSERT_EQ(fx.counts[IDLE], 0);
	client_send(busy, "bc");
	buf_clear(&got);
	ASSERT_OK(client_read(busy, &got, NULL));
	HAS(got, "Connection: close\r\n\r\nabc");
	ASSERT_TRUE(fixture_wait(IDLE, 1));
	fixture_stop();
}

TEST(a_freed_server_tells_its_handlers)
{
	fixture_start(NULL);
	auto_close int one = client_connect(), two = client_connect();
	client_send(one, "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
	client_send(two, "GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
	ASSERT_TRUE(fixture_wait(REQUESTS, 2));
	fixture_stop();
	ASSERT_EQ(fx.counts[GONE], 2);
}

TESTS(RUN(malformed_heads_are_answered_and_closed), RUN(smuggling_probes_are_refused),
      RUN(malformed_chunks_end_the_request), RUN(heads_and_trailers_beyond_the_limit_get_431),
      RUN(a_pipeline_is_answered_in_order), RUN(a_head_may_come_byte_by_byte),
      RUN(a_client_that_closed_only_its_half_gets_a_whole_answer),
      RUN(a_request_that_ends_in_its_middle_is_told_so), RUN(a_client_that_leaves_is_noticed_in_every_state),
      RUN(slow_senders_are_cut_off_and_told_where_they_had_begun),
      RUN(a_client_that_never_reads_is_cut_off_when_a_limit_says_so),
      RUN(connections_above_the_limit_are_told), RUN(draining_ends_idle_connections_and_lets_requests_finish),
      RUN(a_freed_server_tells_its_handlers))
