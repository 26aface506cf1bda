#include "routes/control_message.h"

#include "unit.h"

static struct control_message parse(const char *text, bool whole)
{
	return control_message_parse(text, strlen(text), whole);
}

TEST(the_messages_of_the_contract_are_understood)
{
	struct control_message m = parse("{\"type\":\"resize\",\"cols\":120,\"rows\":40}", true);

	ASSERT_EQ(m.kind, CONTROL_RESIZE);
	ASSERT_EQ(m.cols, 120);
	ASSERT_EQ(m.rows, 40);
	ASSERT_EQ(parse("{\"type\":\"interrupt\"}", true).kind, CONTROL_INTERRUPT);
	ASSERT_EQ(parse("{\"type\":\"terminate\"}", true).kind, CONTROL_TERMINATE);
}

TEST(sizes_that_are_none_are_told_apart)
{
	static const char *const wrong[] = {"{\"type\":\"resize\"}",
					    "{\"type\":\"resize\",\"cols\":0,\"rows\":5}",
					    "{\"type\":\"resize\",\"cols\":5}",
					    "{\"type\":\"resize\",\"cols\":\"5\",\"rows\":5}",
					    "{\"type\":\"resize\",\"cols\":5,\"rows\":-1}",
					    "{\"type\":\"resize\",\"cols\":null,\"rows\":5}"};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		ASSERT_EQ(parse(wrong[i], true).kind, CONTROL_BAD_SIZE);
		ASSERT_EQ(parse(wrong[i], false).kind, CONTROL_BAD_SIZE);
	}
	ASSERT_EQ(parse("{\"type\":\"resize\",\"cols\":5.5,\"rows\":5}", true).kind, CONTROL_BAD_SIZE);
	ASSERT_EQ(parse("{\"type\":\"resize\",\"cols\":5.5,\"rows\":5}", false).kind, CONTROL_RESIZE);
}

TEST(other_texts_are_unknown_or_malformed)
{
	static const char *const malformed[] = {
		"", "x", "{", "[]", "null", "7", "\"resize\"", "{\"type\":\"resize\"} x", "\xff"};
	static const char *const unknown[] = {"{}",
					      "{\"type\":null}",
					      "{\"type\":7}",
					      "{\"type\":\"RESIZE\"}",
					      "{\"type\":\"resize\\u0000\"}",
					      "{\"kind\":\"resize\"}"};

	for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
		ASSERT_EQ(parse(malformed[i], true).kind, CONTROL_MALFORMED);
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		if (parse(unknown[i], true).kind != CONTROL_UNKNOWN) fail_msg("'%s'", unknown[i]);
}

TESTS(RUN(the_messages_of_the_contract_are_understood), RUN(sizes_that_are_none_are_told_apart),
      RUN(other_texts_are_unknown_or_malformed))
