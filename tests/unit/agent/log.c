#include "agent/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

static int pipe_ends[2];

static int open_pipe(void **state)
{
	(void)state;
	if (pipe(pipe_ends) < 0) return -1;
	(void)fcntl(pipe_ends[0], F_SETPIPE_SZ, 1 << 20);
	return fd_set_nonblocking(pipe_ends[0]);
}

static int close_pipe(void **state)
{
	(void)state;
	fd_close(pipe_ends[0]);
	fd_close(pipe_ends[1]);
	return 0;
}

/* Writes LEN bytes that begin with NUMBER and reads them as one event. */
static void log_one(struct log *l, uint8_t stream, uint32_t number, size_t len)
{
	auto_free char *bytes = mem_new(len);
	struct iovec parts[2];

	memcpy(bytes, &number, sizeof number);
	memset(bytes + sizeof number, (int)(number % 251), len - sizeof number);
	ASSERT_OK(fd_write_all(pipe_ends[1], bytes, len));
	ASSERT_EQ(log_gather(l, pipe_ends[0], len), len);
	ASSERT_TRUE(log_publish(l, stream, SIZE_MAX, parts));
	ASSERT_EQ(parts[0].iov_len + parts[1].iov_len, len);
}

static void assert_one(const struct log *l, uint64_t seq, uint8_t stream, uint32_t number, size_t len)
{
	uint64_t at = seq;
	struct log_event event;
	struct iovec parts[2];
	auto_free char *bytes = mem_new(len);
	uint32_t got;

	ASSERT_TRUE(log_event_at(l, &at, &event, parts));
	ASSERT_EQ(at, seq);
	ASSERT_EQ(event.stream, stream);
	ASSERT_EQ(event.len, len);
	memcpy(mempcpy(bytes, parts[0].iov_base, parts[0].iov_len), parts[1].iov_base, parts[1].iov_len);
	memcpy(&got, bytes, sizeof got);
	ASSERT_EQ(got, number);
	for (size_t i = sizeof got; i < len; i++)
		ASSERT_EQ((uint8_t)bytes[i], number % 251);
}

TEST(events_come_back_in_order_with_their_streams)
{
	struct log l = {0};
	struct log_event event;
	struct iovec parts[2];
	uint64_t past = 4;

	for (uint32_t i = 1; i <= 3; i++)
		log_one(&l, (uint8_t)(1 + i % 2), i, 10 * i);
	for (uint32_t i = 1; i <= 3; i++)
		assert_one(&l, i, (uint8_t)(1 + i % 2), i, 10 * i);
	ASSERT_FALSE(log_event_at(&l, &past, &event, parts));
	ASSERT_EQ(l.total, 60);
	log_done(&l);
}

TEST(what_is_gathered_is_nobodys_until_it_is_one_event)
{
	struct log l = {0};
	struct log_event event;
	struct iovec parts[2];
	uint64_t seq = 2;

	log_one(&l, 1, 1, LOG_BYTES - 6);
	for (int i = 0; i < 4; i++) {
		ASSERT_OK(fd_write_all(pipe_ends[1], "abc", 3));
		ASSERT_EQ(log_gather(&l, pipe_ends[0], 100), 3);
		/* The third piece overwrites the first event. */
		ASSERT_EQ(l.event_count, i < 2 ? 1 : 0);
		ASSERT_FALSE(log_event_at(&l, &seq, &event, parts));
	}
	ASSERT_EQ(log_next_seq(&l), 2);
	ASSERT_TRUE(log_publish(&l, 2, SIZE_MAX, parts));
	ASSERT_EQ(parts[0].iov_len, 6);
	ASSERT_EQ(memcmp(parts[0].iov_base, "abcabc", 6), 0);
	ASSERT_TRUE(log_event_at(&l, &seq, &event, parts));
	ASSERT_EQ(seq, 2);
	ASSERT_EQ(event.len, 12);
	ASSERT_EQ(event.stream, 2);
	ASSERT_EQ(memcmp(parts[1].iov_base, "abcabc", 6), 0);
	ASSERT_FALSE(log_publish(&l, 2, SIZE_MAX, parts));
	log_done(&l);
}

TEST(much_that_was_gathered_becomes_several_events)
{
	struct log l = {0};
	struct iovec parts[2];

	log_one(&l, 1, 1, LOG_BYTES - 6);
	ASSERT_OK(fd_write_all(pipe_ends[1], "abcdefghij", 10));
	ASSERT_EQ(log_gather(&l, pipe_ends[0], 100), 10);
	ASSERT_TRUE(log_publish(&l, 2, 4, parts));
	ASSERT_EQ(parts[0].iov_len, 4);
	ASSERT_EQ(memcmp(parts[0].iov_base, "abcd", 4), 0);
	ASSERT_TRUE(log_publish(&l, 2, 4, parts));
	/* Over the end of the ring. */
	ASSERT_EQ(parts[0].iov_len, 2);
	ASSERT_EQ(memcmp(parts[0].iov_base, "ef", 2), 0);
	ASSERT_EQ(parts[1].iov_len, 2);
	ASSERT_EQ(memcmp(parts[1].iov_base, "gh", 2), 0);
	ASSERT_TRUE(log_publish(&l, 2, 4, parts));
	ASSERT_EQ(parts[0].iov_len, 2);
	ASSERT_EQ(memcmp(parts[0].iov_base, "ij", 2), 0);
	ASSERT_FALSE(log_publish(&l, 2, 4, parts));
	ASSERT_EQ(log_next_seq(&l), 5);
	log_done(&l);
}

TEST(old_bytes_make_way_with_their_whole_event)
{
	struct log l = {0};
	uint64_t first = 1;
	struct log_event event;
	struct iovec parts[2];
	size_t len = 60000;
	uint32_t count = 40;

	for (uint32_t i = 1; i <= count; i++)
		log_one(&l, 1, i, len);
	ASSERT_EQ(l.byte_count, LOG_BYTES / len * len);
	ASSERT_TRUE(log_event_at(&l, &first, &event, parts));
	ASSERT_EQ(first, count - LOG_BYTES / len + 1);
	for (uint64_t i = first; i <= count; i++)
		assert_one(&l, i, 1, (uint32_t)i, len);
	ASSERT_EQ(l.total, count * len);
	log_done(&l);
}

TEST(the_number_of_events_is_bounded)
{
	struct log l = {0};
	uint64_t first = 0;
	struct log_event event;
	struct iovec parts[2];

	for (uint32_t i = 1; i <= LOG_EVENTS + 5; i++)
		log_one(&l, 1, i, 4);
	ASSERT_EQ(l.event_count, LOG_EVENTS);
	ASSERT_TRUE(log_event_at(&l, &first, &event, parts));
	ASSERT_EQ(first, 6);
	assert_one(&l, 6, 1, 6, 4);
	assert_one(&l, LOG_EVENTS + 5, 1, LOG_EVENTS + 5, 4);
	log_done(&l);
}

TEST(a_settled_log_holds_the_same_in_less_memory)
{
	struct log l = {0}, next = {0};

	for (uint32_t i = 1; i <= 30; i++)
		log_one(&l, 1, i, 50000);
	log_settle(&l);
	log_settle(&l);
	for (uint32_t i = 11; i <= 30; i++)
		assert_one(&l, i, 1, i, 50000);
	ASSERT_EQ(log_weight(&l), 20 * (50000 + sizeof(struct log_event)));
	/* The arena serves the next one, who does not see what was there. */
	log_one(&next, 2, 7, 10);
	assert_one(&next, 1, 2, 7, 10);
	log_done(&next);
	log_done(&l);
}

TEST(when_very_many_write_the_others_keep_less)
{
	struct log logs[LOGS_LARGE + 1] = {0};
	struct log *small = &logs[LOGS_LARGE];

	for (uint32_t i = 0; i <= LOGS_LARGE; i++)
		log_one(&logs[i], 1, i, 100);
	for (uint32_t i = 0; i < 10; i++)
		log_one(small, 1, i, LOG_BYTES / LOG_SMALLER / 4);
	ASSERT_EQ(small->byte_count, LOG_BYTES / LOG_SMALLER);
	assert_one(small, 11, 1, 9, LOG_BYTES / LOG_SMALLER / 4);
	log_settle(small);
	assert_one(small, 11, 1, 9, LOG_BYTES / LOG_SMALLER / 4);
	for (uint32_t i = 0; i <= LOGS_LARGE; i++)
		log_done(&logs[i]);
	log_one(small, 1, 3, LOG_BYTES / 2);
	ASSERT_EQ(small->bytes_room, LOG_BYTES);
	log_done(small);
}

TEST(a_silent_log_settles_to_nothing)
{
	struct log l = {0};
	struct iovec parts[2];
	uint64_t seq = 1;
	struct log_event event;

	log_settle(&l);
	ASSERT_EQ(log_gather(&l, pipe_ends[0], 100), -EAGAIN);
	ASSERT_FALSE(log_publish(&l, 1, SIZE_MAX, parts));
	log_settle(&l);
	ASSERT_EQ(log_weight(&l), 0);
	ASSERT_FALSE(log_event_at(&l, &seq, &event, parts));
	log_done(&l);
}

TEST(a_terminals_log_is_smaller_and_has_arenas_of_its_own)
{
	struct log terminal = {.kind = LOG_OF_TERMINAL}, process = {0};
	uint64_t first = 200 - LOG_TERMINAL_BYTES / 4000; /* that one is cut */

	for (uint32_t i = 0; i < 200; i++) {
		log_one(&terminal, 1, i, 4000);
		log_one(&process, 1, i, 4000);
	}
	ASSERT_EQ(log_first_seq(&terminal), first);
	ASSERT_EQ(log_first_seq(&process), 1);
	ASSERT_EQ(log_next_seq(&terminal), 201);
	assert_one(&terminal, 200, 1, 199, 4000);
	log_settle(&terminal);
	ASSERT_EQ(log_first_seq(&terminal), first);
	assert_one(&terminal, first + 1, 1, (uint32_t)first, 4000);
	assert_one(&terminal, 200, 1, 199, 4000);
	log_done(&terminal);
	log_done(&process);
}

/* Event SEQ has lost its beginning: of what log_one() wrote as NUMBER, LEN bytes are left. */
static void assert_cut(const struct log *l, uint64_t seq, uint32_t number, size_t len)
{
	uint64_t at = 1;
	struct log_event event;
	struct iovec parts[2];

	ASSERT_TRUE(log_event_at(l, &at, &event, parts));
	ASSERT_EQ(at, seq);
	ASSERT_TRUE(event.cut);
	ASSERT_EQ(event.len, len);
	ASSERT_EQ(parts[0].iov_len + parts[1].iov_len, len);
	for (size_t i = 0; i < 2; i++) {
		const uint8_t *bytes = parts[i].iov_base;

		for (size_t j = 0; j < parts[i].iov_len; j++)
			ASSERT_EQ(bytes[j], number % 251);
	}
}

TEST(of_a_terminal_the_oldest_event_is_cut_so_that_all_of_its_room_is_of_use)
{
	struct log l = {.kind = LOG_OF_TERMINAL};
	size_t len = 60000, rest = LOG_TERMINAL_BYTES % len;

	for (uint32_t i = 1; i <= 30; i++) {
		log_one(&l, 1, i, len);
		if (i <= LOG_TERMINAL_BYTES / len) continue;
		ASSERT_EQ(l.byte_count, LOG_TERMINAL_BYTES);
		assert_cut(&l, i - LOG_TERMINAL_BYTES / len, (uint32_t)(i - LOG_TERMINAL_BYTES / len), rest);
		assert_one(&l, i, 1, i, len);
	}
	/* Exactly what is left of it is overwritten: it goes. */
	log_one(&l, 1, 31, rest);
	ASSERT_EQ(log_first_seq(&l), 31 - LOG_TERMINAL_BYTES / len);
	assert_one(&l, log_first_seq(&l), 1, (uint32_t)log_first_seq(&l), len);
	log_one(&l, 1, 32, 10);
	assert_cut(&l, 31 - LOG_TERMINAL_BYTES / len, (uint32_t)(31 - LOG_TERMINAL_BYTES / len), len - 10);
	log_settle(&l);
	assert_cut(&l, 31 - LOG_TERMINAL_BYTES / len, (uint32_t)(31 - LOG_TERMINAL_BYTES / len), len - 10);
	assert_one(&l, 32, 1, 32, 10);
	log_done(&l);
}

TEST(a_log_that_was_dropped_goes_on_counting)
{
	struct log l = {0};
	struct log_event event;
	struct iovec parts[2];
	uint64_t seq = 2;

	for (uint32_t i = 0; i < 5; i++)
		log_one(&l, 1, i, 100);
	log_drop(&l);
	ASSERT_EQ(log_weight(&l), 0);
	ASSERT_FALSE(log_event_at(&l, &seq, &event, parts));
	ASSERT_EQ(seq, 6);
	log_one(&l, 2, 9, 10);
	assert_one(&l, 6, 2, 9, 10);
	log_done(&l);
	ASSERT_EQ(log_next_seq(&l), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(events_come_back_in_order_with_their_streams),
		RUN(what_is_gathered_is_nobodys_until_it_is_one_event),
		RUN(much_that_was_gathered_becomes_several_events),
		RUN(old_bytes_make_way_with_their_whole_event),
		RUN(the_number_of_events_is_bounded),
		RUN(a_settled_log_holds_the_same_in_less_memory),
		RUN(when_very_many_write_the_others_keep_less),
		RUN(a_silent_log_settles_to_nothing),
		RUN(a_terminals_log_is_smaller_and_has_arenas_of_its_own),
		RUN(of_a_terminal_the_oldest_event_is_cut_so_that_all_of_its_room_is_of_use),
		RUN(a_log_that_was_dropped_goes_on_counting)};

	return cmocka_run_group_tests(tests, open_pipe, close_pipe);
}
