#include "agent/input.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

struct source {
	struct input_source source;
	size_t taken;
};

static void on_taken(struct input_source *s, size_t bytes)
{
	container_of(s, struct source, source)->taken += bytes;
}

static struct input input;
static int reader = -1;
static char much[128 << 10];

#define PIPE_SIZE 4096
#define CAP       ((size_t)64 << 10)

static int begin(void **state)
{
	int ends[2];

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0) return -1;
	(void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE);
	reader = ends[0];
	input_init(&input, CAP);
	input.fd = ends[1];
	return 0;
}

static int done(void **state)
{
	(void)state;
	input_close(&input);
	reader = fd_close(reader);
	return 0;
}

/* What the reactor would say when the pipe has room again. */
static void pipe_has_room(void)
{
	input.watch.on_event(&input.watch, 0);
}

/* Reads all there is, with the help of the reactor that we play. */
static size_t drain(char *to, size_t room)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(reader, to + len, room - len)) > 0) {
		len += (size_t)n;
		pipe_has_room();
	}
	return len;
}

TEST(a_key_goes_through_at_once_and_leaves_nothing_behind)
{
	struct source a = {.source.on_taken = on_taken};
	char got[8];

	ASSERT_OK(input_add(&input, &a.source, "x", 1));
	ASSERT_EQ(a.taken, 1);
	ASSERT_EQ(input.queue.room, 0);
	ASSERT_EQ(drain(got, sizeof got), 1);
}

TEST(what_does_not_fit_waits_and_each_source_hears_of_its_own)
{
	struct source a = {.source.on_taken = on_taken}, b = {.source.on_taken = on_taken};
	static char got[sizeof much];
	size_t len;

	memset(much, 'a', 10000);
	ASSERT_OK(input_add(&input, &a.source, much, 10000));
	ASSERT_EQ(a.taken, PIPE_SIZE);
	memset(much, 'b', 5000);
	ASSERT_OK(input_add(&input, &b.source, much, 5000));
	ASSERT_EQ(b.taken, 0);
	len = drain(got, sizeof got);
	ASSERT_EQ(len, 15000);
	ASSERT_EQ(a.taken, 10000);
	ASSERT_EQ(b.taken, 5000);
	for (size_t i = 0; i < len; i++)
		ASSERT_EQ(got[i], i < 10000 ? 'a' : 'b');
}

TEST(the_bytes_of_a_source_that_left_still_arrive)
{
	static char got[sizeof much];
	struct source a = {.source.on_taken = on_taken};

	ASSERT_OK(input_add(&input, &a.source, much, 20000));
	input_forget(&input, &a.source);
	ASSERT_EQ(drain(got, sizeof got), 20000);
	ASSERT_EQ(a.taken, PIPE_SIZE);
}

TEST(beyond_its_cap_nothing_is_taken)
{
	struct source a = {.source.on_taken = on_taken};

	ASSERT_OK(input_add(&input, &a.source, much, CAP));
	ASSERT_EQ(input_add(&input, &a.source, much, CAP), -ENOBUFS);
	ASSERT_EQ(a.taken, PIPE_SIZE);
	ASSERT_EQ(input.queue.len, CAP - PIPE_SIZE);
}

TEST(when_nobody_reads_any_more_all_is_taken_and_dropped)
{
	struct source a = {.source.on_taken = on_taken};

	ASSERT_OK(input_add(&input, &a.source, much, 20000));
	reader = fd_close(reader);
	pipe_has_room();
	ASSERT_EQ(a.taken, 20000);
	ASSERT_EQ(input.fd, -1);
	ASSERT_FALSE(input.lost);
	ASSERT_OK(input_add(&input, &a.source, "x", 1));
	ASSERT_EQ(a.taken, 20001);
}

TEST(the_end_comes_after_the_last_byte)
{
	struct source a = {.source.on_taken = on_taken};
	static char got[sizeof much];

	ASSERT_OK(input_add(&input, &a.source, much, 20000));
	input_end(&input);
	ASSERT_TRUE(input.fd >= 0);
	ASSERT_OK(input_add(&input, &a.source, "late", 4)); /* dropped */
	ASSERT_EQ(drain(got, sizeof got), 20000);
	ASSERT_EQ(input.fd, -1);
	ASSERT_EQ(read(reader, got, 1), 0);
}

TEST(what_cannot_be_written_is_lost_and_that_is_known)
{
	struct source a = {.source.on_taken = on_taken};

	fd_close(input.fd);
	input.fd = fcntl(reader, F_DUPFD_CLOEXEC, 3); /* nobody can write to that end */
	ASSERT_OK(input_add(&input, &a.source, "abc", 3));
	for (int i = 0; i < 3 && input.fd >= 0; i++) {
		ASSERT_FALSE(input.lost);
		ASSERT_EQ(a.taken, 0);
		pipe_has_room();
	}
	ASSERT_TRUE(input.lost);
	ASSERT_EQ(a.taken, 3);
	ASSERT_EQ(input.fd, -1);
}

#define ALONE(test) cmocka_unit_test_setup_teardown(test, begin, done)

int main(void)
{
	const struct CMUnitTest tests[] = {ALONE(a_key_goes_through_at_once_and_leaves_nothing_behind),
					   ALONE(what_does_not_fit_waits_and_each_source_hears_of_its_own),
					   ALONE(the_bytes_of_a_source_that_left_still_arrive),
					   ALONE(beyond_its_cap_nothing_is_taken),
					   ALONE(when_nobody_reads_any_more_all_is_taken_and_dropped),
					   ALONE(the_end_comes_after_the_last_byte),
					   ALONE(what_cannot_be_written_is_lost_and_that_is_known)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
