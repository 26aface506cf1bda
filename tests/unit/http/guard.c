#include "http/guard.h"

#include <stdio.h>

#include "unit.h"

static enum guard_fault judge(const char *bytes, size_t len, size_t step, struct guard *g)
{
	enum guard_fault fault = GUARD_FINE;

	*g = (struct guard){0};
	for (size_t at = 0, used; at < len && fault == GUARD_FINE && !g->complete; at += used) {
		size_t n = len - at < step ? len - at : step;

		fault = guard_feed(g, bytes + at, n, 1000, &used);
	}
	return fault;
}

/* The verdict is the same however the bytes arrive. */
static enum guard_fault verdict(const char *text)
{
	struct guard whole, pieces;
	enum guard_fault fault = judge(text, strlen(text), SIZE_MAX, &whole);

	for (size_t step = 1; step < 7; step++) {
		ASSERT_EQ(judge(text, strlen(text), step, &pieces), fault);
		ASSERT_EQ(pieces.seen, whole.seen);
		ASSERT_EQ(pieces.complete, whole.complete);
	}
	return fault;
}

TEST(a_plain_head_passes_and_ends_where_its_empty_line_ends)
{
	static const char text[] = "\r\nGET /x HTTP/1.1\r\nHost: a\r\nX:\r\nY: \xe4 z\t\r\n\r\nrest";
	struct guard g;

	ASSERT_EQ(judge(text, sizeof text - 1, SIZE_MAX, &g), GUARD_FINE);
	ASSERT_TRUE(g.complete);
	ASSERT_STR(text + g.seen, "rest");
	ASSERT_EQ(g.skipped, 2);
	ASSERT_EQ(verdict(text), GUARD_FINE);
}

TEST(line_ends_have_one_spelling)
{
	ASSERT_EQ(verdict("GET / HTTP/1.1\nHost: a\n\n"), GUARD_BARE_LF);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\n\r\n"), GUARD_BARE_LF);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\r\n\n"), GUARD_BARE_LF);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"), GUARD_BARE_CR);
	ASSERT_EQ(verdict("GET / HTTP/1.1\rHost: a\r\n\r\n"), GUARD_BARE_CR);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\r\n\rX"), GUARD_BARE_CR);
	ASSERT_EQ(verdict("\rGET / HTTP/1.1\r\n\r\n"), GUARD_BARE_CR);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nX: a\r\r\n\r\n"), GUARD_BARE_CR);
}

TEST(header_names_and_folds_that_others_read_differently_are_refused)
{
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nContent-Length: 1\r\n 5\r\n\r\n"), GUARD_FOLDED);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"), GUARD_FOLDED);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nContent-Length : 5\r\n\r\n"), GUARD_FIELD_NAME);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nTransfer-Encoding\t: chunked\r\n\r\n"), GUARD_FIELD_NAME);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nno colon\r\n\r\n"), GUARD_FIELD_NAME);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\n: value\r\n\r\n"), GUARD_FIELD_NAME);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nX\xc3\xa4: v\r\n\r\n"), GUARD_FIELD_NAME);
}

TEST(control_characters_and_garbage_are_refused_at_once)
{
	static const char nul[] = "GET / HTTP/1.1\r\nX: a\0b\r\n\r\n";
	struct guard g;

	ASSERT_EQ(judge(nul, sizeof nul - 1, SIZE_MAX, &g), GUARD_CONTROL);
	ASSERT_EQ(verdict("GET /\x01 HTTP/1.1\r\n\r\n"), GUARD_CONTROL);
	ASSERT_EQ(verdict("GET / HTTP/1.1\r\nX: \x7f\r\n\r\n"), GUARD_CONTROL);
	ASSERT_EQ(verdict("\x16\x03\x01\x02"), GUARD_NOT_HTTP); /* a TLS greeting */
	ASSERT_EQ(verdict("G\xff"), GUARD_NOT_HTTP);
	ASSERT_EQ(verdict("get / HTTP/1.1\r\n"), GUARD_NOT_HTTP);
	ASSERT_EQ(verdict("GET\r\n"), GUARD_NOT_HTTP);
	ASSERT_EQ(verdict("GET\t/ HTTP/1.1\r\n"), GUARD_NOT_HTTP);
	ASSERT_EQ(verdict("GET  / HTTP/1.1\r\n"), GUARD_NOT_HTTP);
	ASSERT_EQ(verdict("GET \x7f/ HTTP/1.1\r\n"), GUARD_NOT_HTTP);
}

TEST(a_head_has_a_greatest_size_and_number_of_lines)
{
	char text[2000];
	struct guard g;
	size_t used;

	memset(text, 'A', sizeof text);
	g = (struct guard){0};
	ASSERT_EQ(guard_feed(&g, text, sizeof text, 1000, &used), GUARD_TOO_LARGE);
	ASSERT_EQ(used, 1001);
	g = (struct guard){0};
	ASSERT_EQ(guard_feed(&g, "GET / HTTP/1.1\r\n", 16, 1 << 20, &used), GUARD_FINE);
	for (unsigned i = 1; i < GUARD_LINES_MAX; i++)
		ASSERT_EQ(guard_feed(&g, "a:\r\n", 4, 1 << 20, &used), GUARD_FINE);
	ASSERT_EQ(guard_feed(&g, "a:\r\n", 4, 1 << 20, &used), GUARD_TOO_MANY);
}

/* FIELDS: "name: value\n..." */
static enum guard_fault judge_fields(const char *fields, unsigned minor)
{
	struct guard_facts f = {0};

	while (*fields) {
		size_t name = strcspn(fields, ":"), line = strcspn(fields, "\n");

		guard_note(&f, fields, name, fields + name + 2, line - name - 2);
		fields += line + 1;
	}
	return guard_judge(&f, 1, minor);
}

TEST(framing_that_could_be_read_in_two_ways_is_refused)
{
	ASSERT_EQ(judge_fields("Host: a\n", 1), GUARD_FINE);
	ASSERT_EQ(judge_fields("Accept: a\n", 1), GUARD_NO_HOST);
	ASSERT_EQ(judge_fields("Accept: a\n", 0), GUARD_FINE);
	ASSERT_EQ(judge_fields("Host: a\nhost: a\n", 1), GUARD_TWO_HOSTS);
	ASSERT_EQ(judge_fields("Host: a/b\n", 1), GUARD_BAD_HOST);
	ASSERT_EQ(judge_fields("Host: a, b\n", 1), GUARD_BAD_HOST);
	ASSERT_EQ(judge_fields("Host: [::1]:80\n", 1), GUARD_FINE);
	ASSERT_EQ(judge_fields("Host: a\nContent-Length: 5\nTransfer-Encoding: chunked\n", 1),
		  GUARD_LENGTH_AND_CODING);
	ASSERT_EQ(judge_fields("Host: a\nContent-Length: 5\ncontent-length: 5\n", 1), GUARD_TWO_LENGTHS);
	for (const char *const *bad = (const char *const[]){"+5", "-5", "0x5", "5,5", "5 5", "5a", "1e3",
							    "1234567890123456789", NULL};
	     *bad; bad++) {
		char text[100];

		(void)snprintf(text, sizeof text, "Host: a\nContent-Length: %s\n", *bad);
		ASSERT_EQ(judge_fields(text, 1), GUARD_BAD_LENGTH);
	}
	ASSERT_EQ(judge_fields("Host: a\nContent-Length: \n", 1), GUARD_BAD_LENGTH);
	ASSERT_EQ(judge_fields("Host: a\nTransfer-Encoding: chunked\n", 0), GUARD_CODING_OLD);
	ASSERT_EQ(judge_fields("Host: a\nTransfer-Encoding: Chunked\n", 1), GUARD_FINE);
	ASSERT_EQ(judge_fields("Host: a\nTransfer-Encoding: gzip, chunked\n", 1), GUARD_CODING);
	ASSERT_EQ(judge_fields("Host: a\nTransfer-Encoding: xchunked\n", 1), GUARD_CODING);
	ASSERT_EQ(judge_fields("Host: a\nTransfer-Encoding: identity\n", 1), GUARD_CODING);
	ASSERT_EQ(judge_fields("Host: a\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked\n", 1),
		  GUARD_TWO_CODINGS);
	ASSERT_EQ(judge_fields("Host: a\nExpect: 200-ok\n", 1), GUARD_EXPECTATION);
	ASSERT_EQ(judge_fields("Host: a\nExpect: 100-Continue\n", 1), GUARD_FINE);
	ASSERT_EQ(guard_judge(&(struct guard_facts){.hosts = 1}, 0, 9), GUARD_VERSION);
	ASSERT_EQ(guard_judge(&(struct guard_facts){.hosts = 1}, 2, 0), GUARD_VERSION);
	ASSERT_EQ(guard_judge(&(struct guard_facts){.hosts = 1}, 1, 2), GUARD_VERSION);
}

TEST(every_fault_has_a_status_and_a_sentence)
{
	for (enum guard_fault f = GUARD_FINE + 1; f <= GUARD_NO_HOST; f++) {
		ASSERT_TRUE(guard_status(f) >= 400 && guard_status(f) < 600);
		ASSERT_TRUE(*guard_text(f) != '\0');
	}
	ASSERT_EQ(guard_status(GUARD_CODING), 501);
	ASSERT_EQ(guard_status(GUARD_TOO_LARGE), 431);
}

TESTS(RUN(a_plain_head_passes_and_ends_where_its_empty_line_ends), RUN(line_ends_have_one_spelling),
      RUN(header_names_and_folds_that_others_read_differently_are_refused),
      RUN(control_characters_and_garbage_are_refused_at_once),
      RUN(a_head_has_a_greatest_size_and_number_of_lines),
      RUN(framing_that_could_be_read_in_two_ways_is_refused), RUN(every_fault_has_a_status_and_a_sentence))
