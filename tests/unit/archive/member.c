#include "archive/member.h"

#include "unit.h"

static const char *path_of(const char *name)
{
	static struct buf path;

	path.cap = 1000;
	ASSERT_OK(member_path(name, &path));
	return path.data;
}

TEST(a_name_becomes_a_path_below_the_root)
{
	ASSERT_STR(path_of("a/b"), "a/b");
	ASSERT_STR(path_of("./a//b/./c/"), "a/b/c");
	ASSERT_STR(path_of("..."), "...");
	ASSERT_STR(path_of("a..b/.c"), "a..b/.c");
}

TEST(the_root_is_the_empty_path)
{
	ASSERT_STR(path_of("."), "");
	ASSERT_STR(path_of("./"), "");
	ASSERT_STR(path_of(".//./"), "");
}

TEST(a_name_that_leads_out_is_refused)
{
	auto_buf struct buf path = buf_with_cap(1000);

	ASSERT_EQ(member_path("/a", &path), -EPERM);
	ASSERT_EQ(member_path("..", &path), -EPERM);
	ASSERT_EQ(member_path("a/../b", &path), -EPERM);
	ASSERT_EQ(member_path("./a/..", &path), -EPERM);
}

TEST(a_name_no_file_can_have_is_refused)
{
	auto_buf struct buf path = buf_with_cap(300);
	char name[400];

	memset(name, 'x', sizeof name);
	name[256] = '\0';
	ASSERT_EQ(member_path(name, &path), -ENAMETOOLONG);
	name[200] = '/';
	name[256] = 'x';
	name[301] = '\0';
	ASSERT_EQ(member_path(name, &path), -ENAMETOOLONG);
}

TEST(the_base_is_what_stands_behind_the_last_slash)
{
	auto_buf struct buf path = buf_with_cap(100);
	size_t dir_len;

	ASSERT_OK(member_path("a/b/c", &path));
	ASSERT_STR(member_base(&path, &dir_len), "c");
	ASSERT_EQ(dir_len, 3);
	ASSERT_OK(member_path("c", &path));
	ASSERT_STR(member_base(&path, &dir_len), "c");
	ASSERT_EQ(dir_len, 0);
}

TESTS(RUN(a_name_becomes_a_path_below_the_root), RUN(the_root_is_the_empty_path),
      RUN(a_name_that_leads_out_is_refused), RUN(a_name_no_file_can_have_is_refused),
      RUN(the_base_is_what_stands_behind_the_last_slash))
