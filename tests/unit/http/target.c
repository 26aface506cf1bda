#include "http/target.h"

#include "base/buf.h"
#include "unit.h"

static char room[1000];

static const char *path_of(const char *text)
{
	struct target t;

	if (target_parse(text, strlen(text), room, &t) < 0) return "refused";
	return t.path;
}

TEST(dot_segments_are_resolved_in_every_spelling)
{
	ASSERT_STR(path_of("/v1/sandbox/a/exec"), "/v1/sandbox/a/exec");
	ASSERT_STR(path_of("/a/./b"), "/a/b");
	ASSERT_STR(path_of("/a/../b"), "/b");
	ASSERT_STR(path_of("/a/%2e%2E/b"), "/b");
	ASSERT_STR(path_of("/a/.%2e/b"), "/b");
	ASSERT_STR(path_of("/a/%2e/b"), "/a/b");
	ASSERT_STR(path_of("/../../etc/passwd"), "/etc/passwd");
	ASSERT_STR(path_of("/a/.."), "/");
	ASSERT_STR(path_of("/a/b/.."), "/a/");
	ASSERT_STR(path_of("/a/."), "/a/");
	ASSERT_STR(path_of("/a/b/../"), "/a/");
	ASSERT_STR(path_of("/a//../b"), "/a/b");
	ASSERT_STR(path_of("/"), "/");
}

TEST(everything_else_stays_as_it_was_sent)
{
	ASSERT_STR(path_of("/a//b/"), "/a//b/");
	ASSERT_STR(path_of("/a%2Fb%2f..%2fc"), "/a%2Fb%2f..%2fc");
	ASSERT_STR(path_of("/%252e%252e/x"), "/%252e%252e/x");
	ASSERT_STR(path_of("/.../..a/a../%2"), "/.../..a/a../%2");
	ASSERT_STR(path_of("/foo;rm/~x:y"), "/foo;rm/~x:y");
}

TEST(an_absolute_form_is_taken_apart)
{
	static const char text[] = "http://Host:80/a/../b?q=/../x";
	struct target t;

	ASSERT_OK(target_parse(text, strlen(text), room, &t));
	ASSERT_STR(t.authority, "Host:80");
	ASSERT_STR(t.path, "/b");
	ASSERT_STR(t.query, "q=/../x");
	ASSERT_STR(text + t.origin_at, "/a/../b?q=/../x");
	ASSERT_STR(path_of("http://h"), "/");
	ASSERT_STR(path_of("HTTPS://h?x"), "/");
	ASSERT_STR(path_of("*"), "*");
}

TEST(other_forms_are_refused)
{
	ASSERT_STR(path_of(""), "refused");
	ASSERT_STR(path_of("a/b"), "refused");
	ASSERT_STR(path_of("host:80"), "refused");
	ASSERT_STR(path_of("http:///x"), "refused");
	ASSERT_STR(path_of("http://u@h/x"), "refused");
	ASSERT_STR(path_of("ftp://h/x"), "refused");
	ASSERT_STR(path_of("/a#b"), "refused");
	ASSERT_STR(path_of("/a?b#c"), "refused");
}

TEST(a_query_may_be_empty_or_absent)
{
	struct target t;

	ASSERT_OK(target_parse("/a", 2, room, &t));
	ASSERT_TRUE(t.query == NULL);
	ASSERT_OK(target_parse("/a?", 3, room, &t));
	ASSERT_STR(t.query, "");
	ASSERT_OK(target_parse("/a?b?c", 6, room, &t));
	ASSERT_STR(t.query, "b?c");
}

static const char *decoded(const char *text)
{
	size_t len;

	return target_decode(text, strlen(text), room, &len) < 0 ? "refused" : room;
}

TEST(escapes_are_decoded_once_and_bad_ones_stay)
{
	ASSERT_STR(decoded("a%20b+c"), "a b+c");
	ASSERT_STR(decoded("%2Fx%2f"), "/x/");
	ASSERT_STR(decoded("%252e"), "%2e");
	ASSERT_STR(decoded("%"), "%");
	ASSERT_STR(decoded("%2"), "%2");
	ASSERT_STR(decoded("%zz%4"), "%zz%4");
	ASSERT_STR(decoded("%C3%a4"), "\xc3\xa4");
	ASSERT_STR(decoded("a%00b"), "refused");
	ASSERT_STR(decoded(""), "");
}

static int parameter(const char *query, const char *name, struct buf *value)
{
	buf_clear(value);
	return target_query_get(query, name, value);
}

TEST(the_first_value_of_a_parameter_is_found_and_decoded)
{
	auto_buf struct buf v = buf_with_cap(10);

	ASSERT_OK(parameter("a=1&b=2&a=3", "a", &v));
	ASSERT_STR(buf_text(&v), "1");
	ASSERT_OK(parameter("x&b=p+q%2B", "b", &v));
	ASSERT_STR(buf_text(&v), "p q+");
	ASSERT_OK(parameter("x&b=2", "x", &v));
	ASSERT_STR(buf_text(&v), "");
	ASSERT_OK(parameter("%62=y=z", "b", &v));
	ASSERT_STR(buf_text(&v), "y=z");
	ASSERT_EQ(parameter("ab=1&b", "a", &v), -ENOENT);
	ASSERT_EQ(parameter("&&=x&", "a", &v), -ENOENT);
	ASSERT_EQ(parameter(NULL, "a", &v), -ENOENT);
	ASSERT_EQ(parameter("a=%00", "a", &v), -EINVAL);
	ASSERT_EQ(parameter("a=12345678901", "a", &v), -E2BIG);
}

TESTS(RUN(dot_segments_are_resolved_in_every_spelling), RUN(everything_else_stays_as_it_was_sent),
      RUN(an_absolute_form_is_taken_apart), RUN(other_forms_are_refused), RUN(a_query_may_be_empty_or_absent),
      RUN(escapes_are_decoded_once_and_bad_ones_stay),
      RUN(the_first_value_of_a_parameter_is_found_and_decoded))
