#include "fixture.h"

static void expect_file(const struct buf *got, size_t offset, size_t len)
{
	const char *body = memmem(got->data, got->len, "\r\n\r\n", 4);

	assert_non_null(body);
	body += 4;
	ASSERT_TRUE((size_t)(got->data + got->len - body) >= len);
	for (size_t i = 0; i < len; i++)
		if (body[i] != (char)((i + offset) * 7 + (i + offset) / 1000))
			fail_msg("byte %zu differs", i);
}

TEST(a_large_file_arrives_whole_and_the_connection_stays)
{
	fixture_start(NULL);
	auto_buf struct buf got = client_ask("GET /file HTTP/1.1\r\nHost: a\r\n\r\n"
					     "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
					     NULL);

	HAS(got, "HTTP/1.1 200 OK\r\n");
	expect_file(&got, 3, FILE_LEN - 3);
	ASSERT_MEM(got.data + got.len - 5, "hello", 5);
	fixture_stop();
}

TEST(a_small_piece_of_a_file_arrives)
{
	fixture_start(NULL);
	auto_buf struct buf got =
		client_ask("GET /smallfile HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", NULL);

	HAS(got, "HTTP/1.1 206 Partial Content\r\n");
	HAS(got, "Content-Length: 1000\r\n");
	expect_file(&got, 1, 1000);
	fixture_stop();
}

TEST(a_file_that_ends_early_cuts_the_connection)
{
	fixture_start(NULL);
	auto_close int fd = client_connect();
	auto_buf struct buf got = buf_with_cap(64u << 20);

	client_send(fd, "GET /shortfile HTTP/1.1\r\nHost: a\r\n\r\n");
	ASSERT_EQ(client_read(fd, &got, NULL), ECONNRESET);
	ASSERT_TRUE(fixture_wait(DONE, 1));
	fixture_stop();
}

TEST(a_client_that_leaves_in_the_middle_of_a_file_leaves_nothing_behind)
{
	fixture_start(NULL);
	for (int i = 0; i < 10; i++) {
		auto_close int fd = client_connect();
		char some[1000];

		client_send(fd, "GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
		ASSERT_TRUE(recv(fd, some, sizeof some, 0) > 0);
	}
	ASSERT_TRUE(fixture_wait(DONE, 10));
	ASSERT_EQ(fx.counts[GONE], 0); /* the handler's work was done with http_reply_file() */
	fixture_stop();
}

TEST(a_server_can_be_freed_while_a_file_is_on_its_way)
{
	fixture_start(NULL);
	auto_close int fd = client_connect();
	char some[1000];

	client_send(fd, "GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
	ASSERT_TRUE(recv(fd, some, sizeof some, 0) > 0);
	fixture_stop();
}

TESTS(RUN(a_large_file_arrives_whole_and_the_connection_stays), RUN(a_small_piece_of_a_file_arrives),
      RUN(a_file_that_ends_early_cuts_the_connection),
      RUN(a_client_that_leaves_in_the_middle_of_a_file_leaves_nothing_behind),
      RUN(a_server_can_be_freed_while_a_file_is_on_its_way))
