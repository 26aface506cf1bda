#include "routes/session_request.h"

#include "unit.h"

static struct session_request r;

static const char *parse(const char *body)
{
	return session_request_parse(body, strlen(body), &r);
}

TEST(a_body_that_asks_for_nothing_is_fine)
{
	static const char *const bodies[] = {
		"", "no json", "null", "[]", "7", "{}", "{\"id\":\"\"}", "{\"id\":5,\"cwd\":[],\"env\":1}"};

	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		ASSERT_TRUE(parse(bodies[i]) == NULL);
		ASSERT_STR(r.id, "");
		ASSERT_STR(r.cwd, "/workspace");
		ASSERT_EQ(r.env_count, 0);
		ASSERT_EQ(r.timeout_ms, 0);
		session_request_done(&r);
	}
}

TEST(fields_are_taken)
{
	ASSERT_TRUE(parse("{\"id\":\"a.b-c\",\"cwd\":\"/tmp/../etc\",\"commandTimeoutMs\":1500.2,"
			  "\"env\":{\"A\":\"x y\",\"N\":null,\"I\":7,\"B\":true,\"O\":{}}}") == NULL);
	ASSERT_STR(r.id, "a.b-c");
	ASSERT_STR(r.cwd, "/etc");
	ASSERT_EQ(r.timeout_ms, 1501);
	ASSERT_EQ(r.env_count, 3);
	ASSERT_STR(r.env[0], "A=x y");
	ASSERT_STR(r.env[1], "I=7");
	ASSERT_STR(r.env[2], "B=true");
	session_request_done(&r);
}

TEST(what_could_never_be_used_is_refused)
{
	ASSERT_STR(parse("{\"id\":\"a b\"}"), "Invalid session ID format");
	ASSERT_STR(parse("{\"id\":\"a..b\"}"), "Invalid session ID format");
	ASSERT_TRUE(parse("{\"cwd\":\"a\\u0000\"}") != NULL);
	ASSERT_TRUE(parse("{\"env\":{\"A=B\":\"x\"}}") != NULL);
	ASSERT_TRUE(parse("{\"env\":{\"A\":\"\\u0000\"}}") != NULL);
}

TESTS(RUN(a_body_that_asks_for_nothing_is_fine), RUN(fields_are_taken),
      RUN(what_could_never_be_used_is_refused))
