#include "base/log.h"

#include <sys/wait.h>
#include <stdio.h>
#include <unistd.h>

#include "unit.h"

/* Standard error is a pipe during each test: what the log writes is what we read. */
static int reader_fd, saved_stderr;

static int set_up(void **state)
{
	int fds[2];

	(void)state;
	if (pipe(fds) < 0) return -1;
	reader_fd = fds[0];
	saved_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(reader_fd);
	return 0;
}

static size_t read_all(char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	close(STDERR_FILENO);
	while ((n = read(reader_fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return len;
}

TEST(a_line_is_one_json_object_in_ascii)
{
	char text[4096];

	ASSERT_OK(log_start("unit", LOG_INFO));
	log_event(LOG_INFO, "met", "who", "a \"b\"\n\xff", "count", LOG_U(7), "nothing", NULL, NULL);
	log_event(LOG_DEBUG, "not_wanted", NULL);
	log_stop();
	read_all(text, sizeof text);
	ASSERT_TRUE(strstr(text,
			   "\"level\":\"info\",\"program\":\"unit\",\"event\":\"met\","
			   "\"who\":\"a \\\"b\\\"\\u000a\\u00ff\",\"count\":\"7\",\"nothing\":\"\"}\n") !=
		    NULL);
	ASSERT_TRUE(strstr(text, "not_wanted") == NULL);
}

TEST(a_reader_that_stopped_costs_lines_and_never_time)
{
	static char text[1 << 20];

	ASSERT_OK(log_start("unit", LOG_INFO));
	/* Far more than pipe and ring hold; with a log that waits for its reader this loop would never end.
	 */
	for (int i = 0; i < 20000; i++)
		log_event(LOG_INFO, "flood", "line", LOG_U(i), NULL);
	pid_t child = fork();
	if (child == 0) {
		/* The reader comes back: counts until the note about what was lost. */
		size_t len = 0;
		ssize_t n;

		close(STDERR_FILENO);
		while ((n = read(reader_fd, text + len, sizeof text - 1 - len)) > 0)
			len += (size_t)n;
		_exit(strstr(text, "\"event\":\"log_lines_dropped\"") && strstr(text, "\"event\":\"after\"")
			      ? 0
			      : 1);
	}
	/* Room comes back as the child reads; each try is dropped or taken, and one is taken in the end. */
	log_stop();
	ASSERT_OK(log_start("unit", LOG_INFO));
	log_event(LOG_INFO, "after", NULL);
	log_stop();
	close(STDERR_FILENO);
	int status = -1;
	ASSERT_EQ(waitpid(child, &status, 0), child);
	ASSERT_EQ(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_is_one_json_object_in_ascii, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_reader_that_stopped_costs_lines_and_never_time, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
