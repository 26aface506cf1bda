#include "keeper/issued.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

static char dir[] = "/tmp/tombolo-unit-issued-XXXXXX";
static int dir_fd;

static struct issued *open_it(void)
{
	struct err e = ERR_NONE;
	struct issued *all = NULL;

	ASSERT_OK(issued_open(dir_fd, &all, &e));
	return all;
}

static void begin(void)
{
	strcpy(strrchr(dir, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_TRUE(dir_fd >= 0);
}

static void end(void)
{
	(void)unlinkat(dir_fd, "issued", 0);
	(void)unlinkat(dir_fd, "issued.new", 0);
	fd_close(dir_fd);
	ASSERT_OK(rmdir(dir));
}

static void add(struct issued *all, const char *id, const char *instance)
{
	struct issued_wish wish = {.pids = 7, .memory_bytes = 1};

	(void)snprintf(wish.id, sizeof wish.id, "%s", id);
	(void)snprintf(wish.instance, sizeof wish.instance, "%s", instance);
	issued_add(all, &wish);
}

static void each_list(const struct issued_wish *wish, void *ctx)
{
	char *text = ctx;

	(void)snprintf(text + strlen(text), 4096 - strlen(text), "%s/%s/%u ", wish->id, wish->instance,
		       wish->pids);
}

static const char *list(const struct issued *all)
{
	static char text[4096];

	text[0] = '\0';
	issued_each(all, each_list, text);
	return text;
}

static off_t file_size(void)
{
	struct stat st;

	ASSERT_OK(fstatat(dir_fd, "issued", &st, 0));
	return st.st_size;
}

TEST(what_is_issued_is_there_for_the_next_one_and_what_was_removed_is_not)
{
	struct issued *all;

	begin();
	all = open_it();
	add(all, "aaaa", "");
	add(all, "bbbb", "lite");
	add(all, "cccc", "");
	issued_forget(all, "aaaa");
	issued_forget(all, "nobody");
	issued_free(all); /* without ceremony: as if it was killed */
	all = open_it();
	ASSERT_STR(list(all), "bbbb/lite/7 cccc//7 ");
	issued_free(all);
	end();
}

TEST(the_file_does_not_grow_for_ever)
{
	struct issued *all;
	char id[16];

	begin();
	all = open_it();
	for (unsigned i = 0; i < 20000; i++) {
		(void)snprintf(id, sizeof id, "id%c%c%c", 'a' + i / 676 % 26, 'a' + i / 26 % 26,
			       'a' + i % 26);
		add(all, id, "");
		issued_forget(all, id);
	}
	ASSERT_TRUE(file_size() < 64 << 10);
	issued_free(all);
	end();
}

TEST(the_oldest_is_forgotten_first)
{
	struct issued *all;
	char id[16];

	begin();
	all = open_it();
	add(all, "first", "");
	for (unsigned i = 0; i < ISSUED_MAX; i++) {
		(void)snprintf(id, sizeof id, "n%c%c%c", 'a' + i / 676 % 26, 'a' + i / 26 % 26, 'a' + i % 26);
		add(all, id, "");
	}
	ASSERT_TRUE(!strstr(list(all), "first"));
	issued_free(all);
	end();
}

/* A power cut may leave any part of it, and a disk any byte. */
TEST(a_file_that_is_cut_or_garbled_anywhere_is_read_as_far_as_it_is_one)
{
	static const char whole[] = "+aaaa - 0 0 0 0\n+bbbb lite 1 2 3 4\n-aaaa\n";

	for (size_t cut = 0; cut < sizeof whole; cut++) {
		char text[sizeof whole];
		struct issued *all;

		for (int garbled = 0; garbled < 2; garbled++) {
			begin();
			memcpy(text, whole, sizeof whole);
			if (garbled) text[cut] = '\xff';
			auto_close int fd = openat(dir_fd, "issued", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			ASSERT_OK(fd_write_all(fd, text, garbled ? sizeof whole - 1 : cut));
			all = open_it();
			add(all, "dddd", "");
			assert_non_null(strstr(list(all), "dddd"));
			issued_free(all);
			all = open_it();
			assert_non_null(strstr(list(all), "dddd"));
			issued_free(all);
			end();
		}
	}
}

TEST(a_line_that_is_none_is_none)
{
	static const char *const wrong[] = {
		"",
		"+",
		"-",
		"aaaa",
		"+aaaa",
		"+aaaa - 0 0 0",
		"+aaaa - 0 0 0 0 ",
		"+aaaa - 0 0 0 0 1",
		"+AAAA - 0 0 0 0",
		"+aaaa ../x 0 0 0 0",
		"+aaaa - x 0 0 0",
		"-AAAA",
		"-aa aa",
		"- aaaa",
		"+../aaaa - 0 0 0 0",
	};
	struct issued_wish wish;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (issued_parse_line(wrong[i], &wish)) fail_msg("'%s' passes", wrong[i]);
	ASSERT_EQ(issued_parse_line("+aaaa lite 1 2 3 4", &wish), '+');
	ASSERT_STR(wish.instance, "lite");
	ASSERT_EQ(wish.disk_bytes, 4);
	ASSERT_EQ(issued_parse_line("-aaaa", &wish), '-');
}

TESTS(RUN(what_is_issued_is_there_for_the_next_one_and_what_was_removed_is_not),
      RUN(the_file_does_not_grow_for_ever), RUN(the_oldest_is_forgotten_first),
      RUN(a_file_that_is_cut_or_garbled_anywhere_is_read_as_far_as_it_is_one),
      RUN(a_line_that_is_none_is_none))
