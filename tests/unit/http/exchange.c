/* Responses and bodies, as a client sees them. */
#include "fixture.h"

#define HEAD "Host: a\r\n"
#define LAST "Host: a\r\nConnection: close\r\n"

TEST(a_whole_response_has_its_length_and_the_connection_stays)
{
	fixture_start(NULL);
	auto_close int fd = client_connect();
	auto_buf struct buf got = buf_with_cap(1 << 20);

	for (int i = 0; i < 3; i++) {
		buf_clear(&got);
		client_send(fd, "GET /hello HTTP/1.1\r\n" HEAD "\r\n");
		ASSERT_OK(client_read(fd, &got, "hello"));
		HAS(got, "HTTP/1.1 200 OK\r\nDate: ");
		HAS(got, "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
	}
	fixture_stop();
}

TEST(head_and_no_content_have_no_body)
{
	fixture_start(NULL);
	auto_buf struct buf got =
		client_ask("HEAD /hello HTTP/1.1\r\n" HEAD "\r\nHEAD /stream HTTP/1.1\r\n" HEAD
			   "\r\nHEAD /smallfile HTTP/1.1\r\n" HEAD "\r\nGET /empty HTTP/1.1\r\n" LAST "\r\n",
			   NULL);

	HAS(got, "Content-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n");
	HAS(got, "Transfer-Encoding: chunked\r\n\r\nHTTP/1.1 206");
	HAS(got, "Content-Length: 1000\r\n\r\nHTTP/1.1 204 No Content\r\n");
	ASSERT_MEM(got.data + got.len - 4, "\r\n\r\n", 4);
	HAS_NOT(got, "Content-Length: 0");
	fixture_stop();
}

TEST(the_handler_sees_the_request_as_it_was_meant)
{
	fixture_start(NULL);
	auto_buf struct buf got =
		client_ask("GET http://other:81/x/%2e%2e/describe?q=1 HTTP/1.1\r\nHost: a\r\n"
			   "X-Probe:  one \t\r\nx-probe: two\r\n\r\n"
			   "GET /\xc3\xa4/../describe?\xff HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
			   NULL);

	HAS(got, "GET|/x/%2e%2e/describe?q=1|/describe|q=1|other:81|one|2");
	HAS(got, "GET|/%C3%A4/../describe?%FF|/describe|%FF||-|0");
	HAS(got, "X-Extra: yes\r\n");
	fixture_stop();
}

TEST(a_stream_is_chunked_and_the_connection_stays)
{
	fixture_start(NULL);
	auto_buf struct buf got =
		client_ask("GET /stream HTTP/1.1\r\n" HEAD "\r\nGET /sse HTTP/1.1\r\n" LAST "\r\n", NULL);

	HAS(got, "\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n005\r\nthird\r\n0\r\n\r\nHTTP/1.1 200 OK");
	HAS(got, "1e\r\nevent: stdout\ndata: aGVsbG8K\n\n\r\na\r\ndata: {}\n\n\r\nd\r\n: "
		 "keepalive\n\n\r\n0\r\n\r\n");
	fixture_stop();
}

TEST(an_old_client_gets_a_stream_without_chunks_and_an_end)
{
	fixture_start(NULL);
	auto_buf struct buf got = client_ask("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", NULL);

	HAS_NOT(got, "chunked");
	HAS(got, "Connection: close\r\n\r\nfirstsecondthird");
	auto_buf struct buf kept = client_ask("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
					      "GET /hello HTTP/1.0\r\n\r\n",
					      NULL);
	HAS(kept, "Connection: keep-alive\r\n\r\nhelloHTTP/1.1 200");
	HAS(kept, "Connection: close\r\n\r\nhello");
	fixture_stop();
}

TEST(bodies_come_whole_in_both_framings)
{
	fixture_start(NULL);
	auto_buf struct buf got =
		client_ask("POST /echo HTTP/1.1\r\n" HEAD "Content-Length: 4\r\n\r\nbody"
			   "POST /echo HTTP/1.1\r\n" HEAD
			   "Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n02\r\nde\r\n0\r\nT: 1\r\n\r\n"
			   "POST /echo HTTP/1.1\r\n" HEAD "Content-Length: 0\r\n\r\n"
			   "POST /echo HTTP/1.1\r\n" LAST "\r\n",
			   NULL);

	HAS(got, "Content-Length: 4\r\n\r\nbodyHTTP");
	HAS(got, "Content-Length: 5\r\n\r\nabcdeHTTP");
	HAS(got, "Content-Length: 0\r\n\r\nHTTP");
	fixture_stop();
}

TEST(a_body_above_its_cap_is_judged_early_and_late)
{
	fixture_start(NULL);
	auto_buf struct buf early =
		client_ask("POST /echo HTTP/1.1\r\n" HEAD "Content-Length: 1048577\r\n\r\n", NULL);
	HAS(early, "413 ");
	HAS(early, "Connection: close");

	/* The client sends all of it before it reads: the answer must survive that. */
	auto_close int fd = client_connect();
	auto_buf struct buf got = buf_with_cap(1 << 20);
	auto_free char *chunk = malloc(100001);
	memset(chunk, 'x', 100000);
	chunk[100000] = '\0';
	client_send(fd, "POST /echo HTTP/1.1\r\n" HEAD "Transfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 50; i++) {
		client_send(fd, "186a0\r\n");
		client_send(fd, chunk);
		client_send(fd, "\r\n");
	}
	ASSERT_OK(client_read(fd, &got, NULL));
	HAS(got, "HTTP/1.1 413 ");
	HAS(got, "{\"error\":\"too large\",\"code\":\"payload_too_large\"}");
	fixture_stop();
}

static void send_and_expect_sum(const char *path)
{
	auto_close int fd = client_connect();
	auto_buf struct buf got = buf_with_cap(1 << 20);
	auto_free char *bytes = malloc(300001);
	char head[200], sum[32];
	size_t expected = 0;

	for (size_t i = 0; i < 300000; i++) {
		bytes[i] = (char)('a' + i % 23);
		expected += (unsigned char)bytes[i];
	}
	bytes[300000] = '\0';
	(void)snprintf(head, sizeof head, "PUT %s HTTP/1.1\r\n" HEAD "Content-Length: 300000\r\n\r\n", path);
	client_send(fd, head);
	client_send(fd, bytes);
	(void)snprintf(sum, sizeof sum, "\r\n\r\n%zu", expected);
	ASSERT_OK(client_read(fd, &got, sum));

	/* Many small chunks in one piece of input, with a pause after each. */
	buf_clear(&got);
	(void)snprintf(head, sizeof head, "PUT %s HTTP/1.1\r\n" LAST "Transfer-Encoding: chunked\r\n\r\n",
		       path);
	client_send(fd, head);
	client_send(fd, "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n");
	ASSERT_OK(client_read(fd, &got, NULL));
	HAS(got, "\r\n\r\n294");
}

TEST(a_streamed_body_arrives_whole_with_and_without_pauses)
{
	fixture_start(NULL);
	send_and_expect_sum("/sum");
	unsigned pieces = fx.counts[PIECES];
	send_and_expect_sum("/slowsum");
	ASSERT_TRUE(fx.counts[PIECES] >= pieces + 3);
	fixture_stop();
}

TEST(a_client_that_waits_for_100_is_told_once_and_only_where_the_body_is_wanted)
{
	fixture_start(NULL);
	auto_close int fd = client_connect();
	auto_buf struct buf got = buf_with_cap(1 << 20);

	client_send(fd, "POST /echo HTTP/1.1\r\n" HEAD);
	client_send(fd, "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	ASSERT_OK(client_read(fd, &got, "HTTP/1.1 100 Continue\r\n\r\n"));
	client_send(fd, "abc");
	ASSERT_OK(client_read(fd, &got, "\r\n\r\nabc"));
	buf_clear(&got);
	client_send(fd,
		    "POST /echo HTTP/1.1\r\n" HEAD "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc");
	ASSERT_OK(client_read(fd, &got, "\r\n\r\nabc"));
	HAS_NOT(got, "100 Continue");

	auto_buf struct buf no = client_ask("POST /refuse HTTP/1.1\r\n" HEAD "Expect: 100-continue\r\n"
					    "Content-Length: 3\r\n\r\n",
					    NULL);
	HAS_NOT(no, "100 Continue");
	HAS(no, "Connection: close");
	auto_buf struct buf big = client_ask("POST /echo HTTP/1.1\r\n" HEAD "Expect: 100-continue\r\n"
					     "Content-Length: 99999999\r\n\r\n",
					     NULL);
	HAS_NOT(big, "100 Continue");
	HAS(big, "HTTP/1.1 413 ");
	fixture_stop();
}

TEST(a_small_body_that_nobody_wants_is_skipped_and_a_large_one_ends_the_connection)
{
	fixture_start(NULL);
	auto_buf struct buf got =
		client_ask("POST /hello HTTP/1.1\r\n" HEAD "Content-Length: 5\r\n\r\nGET /"
			   "POST /hello HTTP/1.1\r\n" HEAD "Content-Length: 65537\r\n\r\nxyz",
			   NULL);
	HAS(got, "Content-Length: 5\r\n\r\nhelloHTTP/1.1 200");
	HAS(got, "Connection: close\r\n\r\nhello");
	fixture_stop();
}

TEST(an_error_is_json_of_ascii_whatever_the_message_holds)
{
	fixture_start(NULL);
	auto_buf struct buf got = client_ask("GET /refuse HTTP/1.1\r\n" LAST "\r\n", NULL);

	HAS(got, "HTTP/1.1 413 Content Too Large\r\n");
	HAS(got, "Content-Type: application/json\r\n");
	HAS(got, "{\"error\":\"no \\\"\\u0001\\u00e4\\ufffd\\ud83d\\ude00\",\"code\":\"payload_too_large\"}");
	fixture_stop();
}

TEST(an_aborted_stream_cannot_be_taken_for_a_whole_one)
{
	fixture_start(NULL);
	auto_close int fd = client_connect();
	auto_buf struct buf got = buf_with_cap(1 << 20);

	client_send(fd, "GET /abort HTTP/1.1\r\n" HEAD "\r\n");
	ASSERT_EQ(client_read(fd, &got, NULL), ECONNRESET);
	HAS_NOT(got, "0\r\n\r\n");
	ASSERT_EQ(fx.counts[GONE], 0);
	fixture_stop();
}

TEST(a_client_that_does_not_read_stops_the_writer)
{
	fixture_start(NULL);
	auto_close int fd = client_connect();
	auto_buf struct buf got = buf_with_cap(64u << 20);

	client_send(fd, "GET /flood HTTP/1.1\r\n" HEAD "\r\n");
	while (got.len < (32u << 20)) {
		char *room = buf_reserve(&got, 65536);
		ssize_t n = recv(fd, room, 65536, 0);
		ASSERT_TRUE(n > 0);
		buf_grew(&got, (size_t)n);
	}
	shutdown(fd, SHUT_RDWR);
	ASSERT_TRUE(fixture_wait(GONE, 1));
	ASSERT_TRUE(fx.most_pending > 0);
	ASSERT_TRUE(fx.most_pending < 65536 + 2 * FLOOD);
	fixture_stop();
}

TEST(secrets_are_equal_or_not)
{
	ASSERT_TRUE(http_equal_secret("key", "key"));
	ASSERT_FALSE(http_equal_secret("kex", "key"));
	ASSERT_FALSE(http_equal_secret("ke", "key"));
	ASSERT_FALSE(http_equal_secret("keyy", "key"));
	ASSERT_FALSE(http_equal_secret("", "key"));
	ASSERT_TRUE(http_equal_secret("", ""));
}

TESTS(RUN(a_whole_response_has_its_length_and_the_connection_stays), RUN(head_and_no_content_have_no_body),
      RUN(the_handler_sees_the_request_as_it_was_meant), RUN(a_stream_is_chunked_and_the_connection_stays),
      RUN(an_old_client_gets_a_stream_without_chunks_and_an_end), RUN(bodies_come_whole_in_both_framings),
      RUN(a_body_above_its_cap_is_judged_early_and_late),
      RUN(a_streamed_body_arrives_whole_with_and_without_pauses),
      RUN(a_client_that_waits_for_100_is_told_once_and_only_where_the_body_is_wanted),
      RUN(a_small_body_that_nobody_wants_is_skipped_and_a_large_one_ends_the_connection),
      RUN(an_error_is_json_of_ascii_whatever_the_message_holds),
      RUN(an_aborted_stream_cannot_be_taken_for_a_whole_one),
      RUN(a_client_that_does_not_read_stops_the_writer), RUN(secrets_are_equal_or_not))
