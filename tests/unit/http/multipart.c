#include "http/multipart.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "unit.h"

#define TYPE "multipart/form-data; boundary=XyZ"

/* "name=data;" for each part. */
struct told {
	size_t len;
	char text[4096];
};

static void tell(struct told *t, const void *bytes, size_t len)
{
	memcpy(t->text + t->len, bytes, len);
	t->len += len;
	t->text[t->len] = '\0';
}

static void on_part(void *ctx, const char *name)
{
	tell(ctx, name, strlen(name));
	tell(ctx, "=", 1);
}

static void on_data(void *ctx, const void *bytes, size_t len)
{
	tell(ctx, bytes, len);
}

static void on_part_end(void *ctx)
{
	tell(ctx, ";", 1);
}

static const struct multipart_events events = {
	.on_part = on_part, .on_data = on_data, .on_part_end = on_part_end};
static struct multipart parser;
static struct told told;

/* BODY in two pieces, cut at CUT. -1: broken; otherwise whether it is complete. */
static int parse(const char *body, size_t len, size_t cut)
{
	told = (struct told){0};
	ASSERT_OK(multipart_init(&parser, TYPE, &events, &told));
	if (multipart_feed(&parser, body, cut) < 0) return -1;
	if (multipart_feed(&parser, body + cut, len - cut) < 0) return -1;
	return multipart_is_complete(&parser);
}

#define PART(name, data) "--XyZ\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" data "\r\n"

TEST(parts_come_out_wherever_the_body_is_cut)
{
	static const char body[] =
		PART("path", "a/b") PART("file", "one\r\ntwo\r\n--Xy\r\r\n\0end") "--XyZ--\r\n";
	static const char expected[] = "path=a/b;file=one\r\ntwo\r\n--Xy\r\r\n\0end;";

	for (size_t cut = 0; cut < sizeof body; cut++) {
		ASSERT_EQ(parse(body, sizeof body - 1, cut), 1);
		ASSERT_EQ(told.len, sizeof expected - 1);
		ASSERT_TRUE(memcmp(told.text, expected, told.len) == 0);
	}
}

TEST(what_only_looks_like_a_delimiter_is_data)
{
	static const char body[] = PART("f", "\r\n--XyY\r\r\n-\r\n--Xy\r\n\r\n--XY") "--XyZ--";

	for (size_t cut = 0; cut < sizeof body - 1; cut++) {
		ASSERT_EQ(parse(body, sizeof body - 1, cut), 1);
		ASSERT_STR(told.text, "f=\r\n--XyY\r\r\n-\r\n--Xy\r\n\r\n--XY;");
	}
}

TEST(names_are_found_in_many_forms)
{
	static const char *const forms[][2] = {
		{"Content-Disposition: form-data; name=\"a\"", "a="},
		{"content-disposition:form-data;name=a", "a="},
		{"Content-Type: x\r\nContent-Disposition: form-data; filename=\"name=x\"; name=\"b\"", "b="},
		{"Content-Disposition: form-data; name=\"q\\\"t\\\\\"", "q\"t\\="},
		{"Content-Disposition: form-data; name=\"c:\\temp\"", "c:\\temp="},
		{"Content-Disposition: form-data", "="},
		{"Content-Type: text/plain", "="},
	};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		char body[512];
		int n = snprintf(body, sizeof body, "--XyZ\r\n%s\r\n\r\n\r\n--XyZ--", forms[i][0]);

		ASSERT_EQ(parse(body, (size_t)n, 3), 1);
		ASSERT_TRUE(strncmp(told.text, forms[i][1], strlen(forms[i][1])) == 0);
		ASSERT_EQ(told.len, strlen(forms[i][1]) + 1);
	}
}

TEST(a_body_may_have_a_preamble_an_epilogue_and_empty_parts)
{
	static const char body[] =
		"ignored --XyZ\r\n--XyZ \t\r\n\r\n\r\n" PART("e", "") "--XyZ--anything\r\n--XyZ\r\n";

	ASSERT_EQ(parse(body, sizeof body - 1, 9), 1);
	ASSERT_STR(told.text, "=;e=;");
}

TEST(broken_bodies_are_refused_or_not_complete)
{
	char large[MULTIPART_HEADERS_MAX + 64];
	int n;

	ASSERT_EQ(parse("", 0, 0), 0);
	ASSERT_EQ(parse("no form at all", 14, 4), 0);
	ASSERT_EQ(parse(PART("a", "b"), sizeof PART("a", "b") - 1, 5), 0);
	ASSERT_EQ(parse("--XyZ\r\n--XyZ--", 14, 5), 0);
	ASSERT_EQ(parse("--XyZnonsense\r\n", 15, 5), -1);
	ASSERT_EQ(parse("--XyZ-x", 7, 5), -1);
	ASSERT_EQ(parse("--XyZ\rx", 7, 5), -1);
	ASSERT_EQ(parse("--XyZ\r\na\0b\r\n\r\n", 14, 5), -1);
	n = snprintf(large, sizeof large, "--XyZ\r\nX: %08199d\r\n\r\n", 0);
	ASSERT_EQ(parse(large, (size_t)n, 5), -1);
}

TEST(content_types_without_a_usable_boundary_are_refused)
{
	static const char *const bad[] = {
		"",
		"text/plain; boundary=x",
		"multipart/form-data",
		"multipart/form-data; charset=x",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"\"",
		"multipart/form-data; boundary=\"x \"",
		"multipart/form-datax; boundary=x",
		"multipart/form-data; boundary=\x01",
		("multipart/form-data; boundary="
		 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")};

	ASSERT_EQ(multipart_init(&parser, NULL, &events, &told), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ASSERT_EQ(multipart_init(&parser, bad[i], &events, &told), -EINVAL);
	ASSERT_OK(multipart_init(&parser, "Multipart/Form-Data ; charset=utf-8; Boundary=\"a b\"", &events,
				 &told));
}

TESTS(RUN(parts_come_out_wherever_the_body_is_cut), RUN(what_only_looks_like_a_delimiter_is_data),
      RUN(names_are_found_in_many_forms), RUN(a_body_may_have_a_preamble_an_epilogue_and_empty_parts),
      RUN(broken_bodies_are_refused_or_not_complete),
      RUN(content_types_without_a_usable_boundary_are_refused))
