/* Sockets, as a peer sees them who makes its frames by hand. */
#include "socket_fixture.h"

#include <poll.h>

TEST(an_upgrade_that_cannot_be_is_two_questions)
{
	static const char *const unusable[] = {
		"GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: close\r\n\r\n",
		"GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n"
		"Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
		"GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n",
		"POST /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	};
	sockets_start();
	auto_buf struct buf plain =
		client_ask("GET /socket HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", NULL);

	HAS(plain, "unwanted");
	for (size_t i = 0; i < ARRAY_LEN(unusable); i++) {
		auto_buf struct buf got = client_ask(unusable[i], NULL);

		HAS(got, "HTTP/1.1 400");
		HAS(got, "unusable");
	}
	fixture_stop();
}

TEST(messages_go_both_ways_and_pings_are_answered)
{
	sockets_start();
	auto_close int fd = open_socket();

	say(fd, "hello");
	expect_frame(fd, FIN | TEXT, "hello");
	say_frame(fd, FIN | PING, "are you there", 13);
	expect_frame(fd, FIN | PONG, "are you there");
	say_frame(fd, FIN | PONG, "", 0);
	say(fd, "");
	expect_frame(fd, FIN | TEXT, "");
	say_frame(fd, FIN | BYE,
		  "\x03\xe8"
		  "done",
		  6);
	expect_close(fd, WEBSOCKET_DONE);
	ASSERT_TRUE(fixture_wait(GONE, 1));
	ASSERT_EQ(closed_code, WEBSOCKET_DONE);
	fixture_stop();
}

TEST(bytes_that_come_with_the_handshake_belong_to_the_socket)
{
	sockets_start();
	auto_close int fd = client_connect();
	auto_buf struct buf b = buf_with_cap(1000);

	ASSERT_OK(buf_add_text(&b, HANDSHAKE));
	add_frame(&b, FIN | TEXT, false, "early", 5);
	ASSERT_OK(fd_write_all(fd, b.data, b.len));
	expect_upgrade(fd);
	expect_frame(fd, FIN | TEXT, "early");
	fixture_stop();
}

/* A text in three fragments with a ping between them, and a sum of binary ones; cut at every byte. */
TEST(fragments_may_be_cut_anywhere_and_hold_control_frames_between_them)
{
	sockets_start();
	auto_close int fd = open_socket();
	auto_buf struct buf b = buf_with_cap(1000);

	add_frame(&b, TEXT, false, "on", 2);
	add_frame(&b, FIN | PING, false, "p", 1);
	add_frame(&b, 0, false, "e \xc3", 3);
	add_frame(&b, FIN, false, "\xa4", 1);
	add_frame(&b, DATA, false, "ab", 2);
	add_frame(&b, FIN | PING, false, "q", 1);
	add_frame(&b, FIN, false, "c", 1);
	for (size_t cut = 1; cut < b.len; cut++) {
		ASSERT_OK(fd_write_all(fd, b.data, cut));
		/* An answered round trip: the server has seen the first part alone. */
		auto_close int other = client_connect();
		auto_buf struct buf got = buf_with_cap(1 << 20);

		client_send(other, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
		ASSERT_OK(client_read(other, &got, "hello"));
		ASSERT_OK(fd_write_all(fd, b.data + cut, b.len - cut));
		expect_frame(fd, FIN | PONG, "p");
		expect_frame(fd, FIN | TEXT, "one \xc3\xa4");
		expect_frame(fd, FIN | PONG, "q");
	}
	say(fd, "sum");
	char sum[80];
	uint64_t value = 0;
	for (size_t i = 0; i < b.len - 1; i++)
		for (const char *c = "abc"; *c; c++)
			value = value * 31 + (unsigned char)*c;
	(void)snprintf(sum, sizeof sum, "%zu %llx", 3 * (b.len - 1), (unsigned long long)value);
	expect_frame(fd, FIN | TEXT, sum);
	fixture_stop();
}

static void send_large(bool pause)
{
	size_t len = (3u << 20) + 17;
	auto_free unsigned char *block = malloc(len);
	uint64_t value = 0;
	char sum[80];

	sockets_start();
	auto_close int fd = open_socket();
	for (size_t i = 0; i < len; i++) {
		block[i] = (unsigned char)(i * 7 + i / 251);
		value = value * 31 + block[i];
	}
	if (pause) say(fd, "pause");
	say_frame(fd, FIN | DATA, block, len);
	say(fd, "sum");
	(void)snprintf(sum, sizeof sum, "%zu %llx", len, (unsigned long long)value);
	expect_frame(fd, FIN | TEXT, sum);
	fixture_stop();
}

TEST(a_large_binary_message_streams_through)
{
	send_large(false);
}

TEST(a_reader_that_pauses_loses_nothing)
{
	send_large(true);
}

TEST(a_message_longer_than_a_frame_leaves_in_fragments)
{
	sockets_start();
	auto_close int fd = open_socket();
	auto_buf struct buf got = buf_with_cap(1 << 20);
	size_t all = 0;
	unsigned first, frames = 0;

	say(fd, "big");
	do {
		first = hear_frame(fd, &got);
		ASSERT_EQ(first & ~FIN, frames ? 0 : DATA);
		ASSERT_TRUE(got.len <= WEBSOCKET_FRAME_MAX);
		for (size_t i = 0; i < got.len; i++)
			ASSERT_EQ(got.data[i], 'b');
		all += got.len;
		frames++;
	} while (!(first & FIN));
	ASSERT_EQ(all, 200000);
	fixture_stop();
}

TEST(a_peer_that_does_not_read_stops_the_writer)
{
	size_t all = 24u << 20, seen = 0;

	sockets_start();
	auto_close int fd = open_socket();
	auto_buf struct buf got = buf_with_cap(1 << 20);

	say(fd, "flood 25165824");
	say_frame(fd, FIN | PING, "", 0); /* is read while the output stands */
	while (seen < all) {
		unsigned first = hear_frame(fd, &got);

		if (first == (FIN | PONG)) continue;
		ASSERT_EQ(first, FIN | DATA);
		seen += got.len;
	}
	ASSERT_EQ(seen, all);
	ASSERT_TRUE(fx.most_pending < 65536 + 2 * 32768 + 4096);
	fixture_stop();
}

TEST(pings_of_a_peer_that_reads_no_answers_do_not_pile_up)
{
	sockets_start();
	auto_close int fd = open_socket();
	auto_buf struct buf b = buf_with_cap(1 << 20), got = buf_with_cap(1 << 20);
	char payload[125];
	size_t pings = 0, sent = 0;
	struct pollfd writable = {.fd = fd, .events = POLLOUT};

	memset(payload, 'p', sizeof payload);
	for (int i = 0; i < 500; i++)
		add_frame(&b, FIN | PING, false, payload, sizeof payload);
	/* Until the server stops to read: everything that can lie between us is full. */
	while (poll(&writable, 1, 500) == 1) {
		ssize_t n =
			send(fd, b.data + sent % b.len, b.len - sent % b.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) sent += (size_t)n;
		ASSERT_TRUE(sent < (256u << 20));
	}
	/* Once we read, all are answered. */
	size_t whole = sent / 131;
	for (; pings < whole; pings++)
		ASSERT_EQ(hear_frame(fd, &got), FIN | PONG);
	fixture_stop();
}

TEST(the_server_closes_with_its_code_after_its_last_words)
{
	sockets_start();
	auto_close int fd = open_socket();
	auto_buf struct buf got = buf_with_cap(1 << 20);
	char more;

	say(fd, "close");
	expect_frame(fd, FIN | TEXT, "last words");
	ASSERT_EQ(hear_frame(fd, &got), FIN | BYE);
	ASSERT_STR(buf_text(&got), "\x0f\xa0"
				   "bye");
	say(fd, "too late");
	say_frame(fd, FIN | BYE, "\x0f\xa0", 2);
	ASSERT_EQ(recv(fd, &more, 1, 0), 0);
	fixture_stop();
	ASSERT_EQ(closed_code, 0); /* who closes hears nothing more */
}

static void expect_refusal(unsigned code, unsigned first, bool bare, const void *bytes, size_t len)
{
	sockets_start();
	auto_close int fd = open_socket();
	auto_buf struct buf b = buf_with_cap(SIZE_MAX / 4);

	add_frame(&b, first, bare, bytes, len);
	/* The server may close while we still write: that is no fault of the test. */
	for (size_t done = 0; done < b.len;) {
		ssize_t n = send(fd, b.data + done, b.len - done, MSG_NOSIGNAL);

		if (n <= 0) break;
		done += (size_t)n;
	}
	auto_buf struct buf got = buf_with_cap(1 << 20);
	ASSERT_EQ(hear_frame(fd, &got), FIN | BYE);
	if (got.len < 2) fail_msg("no code for a first byte of %x, length %zu", first, len);
	ASSERT_EQ((unsigned char)got.data[0] << 8 | (unsigned char)got.data[1], code);
	ASSERT_TRUE(fixture_wait(GONE, 1));
	ASSERT_EQ(closed_code, code);
	fixture_stop();
}

TEST(faults_of_the_peer_have_their_codes)
{
	static char large[WEBSOCKET_TEXT_MAX + 1];

	memset(large, 'x', sizeof large);
	expect_refusal(1002, FIN | TEXT, true, "no mask", 7);
	expect_refusal(1002, FIN | 0x40 | TEXT, false, "reserved bit", 12);
	expect_refusal(1002, FIN | 3, false, "reserved opcode", 15);
	expect_refusal(1002, FIN, false, "nothing to continue", 19);
	expect_refusal(1002, PING, false, "a ping in fragments", 19);
	expect_refusal(1002, FIN | PING, false, large, 126);
	expect_refusal(1002, FIN | BYE, false, "\x03\xed", 2);
	expect_refusal(1007, FIN | TEXT, false, "\xff\xfe", 2);
	expect_refusal(1009, FIN | TEXT, false, large, sizeof large);
}

TEST(a_close_without_a_code_is_answered_and_told)
{
	sockets_start();
	auto_close int fd = open_socket();

	say_frame(fd, FIN | BYE, "", 0);
	expect_close(fd, WEBSOCKET_NO_CODE);
	ASSERT_TRUE(fixture_wait(GONE, 1));
	ASSERT_EQ(closed_code, WEBSOCKET_NO_CODE);
	fixture_stop();
}

static void reset(int fd)
{
	const struct linger now = {.l_onoff = 1};

	ASSERT_OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
	close(fd);
}

TEST(peers_that_vanish_are_noticed)
{
	sockets_start();
	for (unsigned way = 0; way < 6; way++) {
		int fd = open_socket();

		if (way & 2) say_frame(fd, DATA, "half a message", 14);
		if (way & 4) {
			say(fd, "flood 50000000"); /* more than fits: the server waits for us */
			auto_buf struct buf got = buf_with_cap(1 << 20);
			ASSERT_EQ(hear_frame(fd, &got), FIN | DATA);
		}
		if (way & 1) reset(fd);
		else close(fd);
		if (!fixture_wait(GONE, way + 1)) fail_msg("way %u was not noticed", way);
		ASSERT_EQ(closed_code, WEBSOCKET_VANISHED);
	}
	auto_close int half = open_socket();
	ASSERT_OK(shutdown(half, SHUT_WR));
	ASSERT_TRUE(fixture_wait(GONE, 7));
	ASSERT_EQ(closed_code, WEBSOCKET_VANISHED);
	fixture_stop();
}

TEST(what_came_before_the_end_is_heard)
{
	sockets_start();
	auto_close int fd = open_socket();
	auto_buf struct buf b = buf_with_cap(1 << 20);
	char block[1000] = {0};

	for (int i = 0; i < 100; i++)
		add_frame(&b, FIN | DATA, false, block, sizeof block);
	ASSERT_OK(fd_write_all(fd, b.data, b.len));
	ASSERT_OK(shutdown(fd, SHUT_WR));
	ASSERT_TRUE(fixture_wait(GONE, 1));
	ASSERT_TRUE(fixture_wait(PIECES, 100));
	fixture_stop();
}

TEST(an_aborted_socket_is_reset)
{
	sockets_start();
	auto_close int fd = open_socket();
	char c;

	say(fd, "abort");
	ASSERT_EQ(recv(fd, &c, 1, 0), -1);
	ASSERT_EQ(errno, ECONNRESET);
	fixture_stop();
}

TEST(a_server_that_ends_says_so)
{
	sockets_start();
	auto_close int fd = open_socket();
	auto_buf struct buf got = buf_with_cap(1 << 20);
	char more;

	fixture_order(ORDER_DRAIN);
	ASSERT_EQ(hear_frame(fd, &got), FIN | BYE);
	ASSERT_STR(buf_text(&got), "\x03\xf4"
				   "the server ends");
	ASSERT_TRUE(fixture_wait(GONE, 1));
	ASSERT_EQ(closed_code, WEBSOCKET_RESTART);
	say_frame(fd, FIN | BYE, "\x03\xf4", 2);
	ASSERT_EQ(recv(fd, &more, 1, 0), 0);
	ASSERT_TRUE(fixture_wait(IDLE, 1));
	fixture_stop();
}

TEST(a_server_may_be_freed_while_sockets_are_open)
{
	sockets_start();
	auto_close int fd = open_socket();
	auto_close int other = open_socket();

	say(other, "flood 50000000");
	say(fd, "x");
	expect_frame(fd, FIN | TEXT, "x");
	fixture_stop();
	ASSERT_EQ(fx.counts[GONE], 2);
}

TESTS(RUN(an_upgrade_that_cannot_be_is_two_questions), RUN(messages_go_both_ways_and_pings_are_answered),
      RUN(bytes_that_come_with_the_handshake_belong_to_the_socket),
      RUN(fragments_may_be_cut_anywhere_and_hold_control_frames_between_them),
      RUN(a_large_binary_message_streams_through), RUN(a_reader_that_pauses_loses_nothing),
      RUN(a_message_longer_than_a_frame_leaves_in_fragments), RUN(a_peer_that_does_not_read_stops_the_writer),
      RUN(pings_of_a_peer_that_reads_no_answers_do_not_pile_up),
      RUN(the_server_closes_with_its_code_after_its_last_words), RUN(faults_of_the_peer_have_their_codes),
      RUN(a_close_without_a_code_is_answered_and_told), RUN(peers_that_vanish_are_noticed),
      RUN(what_came_before_the_end_is_heard), RUN(an_aborted_socket_is_reset),
      RUN(a_server_that_ends_says_so), RUN(a_server_may_be_freed_while_sockets_are_open))
