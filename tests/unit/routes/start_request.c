#include "routes/start_request.h"

#include "unit.h"

static struct start_request r;
static struct start_fault fault;

typedef bool parser(const char *body, size_t len, struct start_request *ret, struct start_fault *fault);

static bool parse(parser *as, const char *body)
{
	start_request_done(&r);
	fault = (struct start_fault){0};
	return as(body, strlen(body), &r, &fault);
}

static void refused(parser *as, const char *body, unsigned status, const char *message)
{
	if (parse(as, body)) fail_msg("%s was taken", body);
	if (fault.status != status || strcmp(fault.message, message) != 0)
		fail_msg("%s: %u '%s'", body, fault.status, fault.message);
}

#define PROCESS(body, status, message)  refused(start_request_process, body, status, message)
#define TERMINAL(body, status, message) refused(start_request_terminal, body, status, message)

/* Each body has all later faults as well: the order is the contract's. */
TEST(a_process_is_judged_in_the_order_of_the_contract)
{
	PROCESS("", 400, "Invalid JSON body");
	PROCESS("{\"argv\":[]", 400, "Invalid JSON body");
	PROCESS("null", 400, "argv must be a non-empty array");
	PROCESS("7", 400, "argv must be a non-empty array");
	PROCESS("{\"argv\":[],\"timeout\":-1}", 400, "argv must be a non-empty array");
	PROCESS("{\"argv\":\"ls\",\"timeout\":-1}", 400, "argv must be a non-empty array");
	PROCESS("{\"argv\":[\"\",7],\"timeout\":-1}", 400, "argv items must be strings");
	PROCESS("{\"argv\":[\"\"],\"timeout\":-1}", 400, "argv executable must be non-empty");
	PROCESS("{\"argv\":[\"a\"],\"timeout\":0,\"cwd\":\"/tmp\"}", 400,
		"timeout must be a positive finite number");
	PROCESS("{\"argv\":[\"a\"],\"timeout\":null,\"cwd\":\"/tmp\"}", 400,
		"timeout must be a positive finite number");
	PROCESS("{\"argv\":[\"a\"],\"timeout\":\"5\",\"cwd\":\"/tmp\"}", 400,
		"timeout must be a positive finite number");
	PROCESS("{\"argv\":[\"a\"],\"cwd\":\"/tmp\",\"env\":7}", 403,
		"cwd must resolve to a location within /workspace");
	ASSERT_STR(fault.code, "invalid_request");
	PROCESS("{\"argv\":[\"a\"],\"cwd\":\"../x\"}", 403,
		"cwd must resolve to a location within /workspace");
	PROCESS("{\"argv\":[\"a\"],\"env\":[],\"timeout\":0.5}", 400, "env must be an object of strings");
	PROCESS("{\"argv\":[\"a\"],\"env\":null}", 400, "env must be an object of strings");
	PROCESS("{\"argv\":[\"a\"],\"env\":{\"A\":1}}", 400, "env must be an object of strings");
}

TEST(what_no_program_could_be_started_with_is_a_failed_launch)
{
	static const char *const bodies[] = {
		"{\"argv\":[\"a\"],\"env\":{\"\":\"x\"}}", "{\"argv\":[\"a\"],\"env\":{\"A=B\":\"x\"}}",
		"{\"argv\":[\"a\"],\"env\":{\"A\":\"\\u0000\"}}", "{\"argv\":[\"a\"],\"timeout\":0.5}"};

	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		ASSERT_FALSE(parse(start_request_process, bodies[i]));
		ASSERT_EQ(fault.status, 502);
		ASSERT_STR(fault.code, "process_error");
		ASSERT_TRUE(strncmp(fault.message, "process launch failed: ", 23) == 0);
	}
	ASSERT_FALSE(parse(start_request_terminal, "{\"argv\":[\"a\"],\"env\":{\"\":\"x\"}}"));
	ASSERT_STR(fault.code, "exec_transport_error");
	ASSERT_TRUE(strncmp(fault.message, "terminal failed: ", 17) == 0);
}

TEST(a_process_gets_what_was_asked_for)
{
	ASSERT_TRUE(parse(start_request_process,
			  "\xef\xbb\xbf{\"argv\":[\"sh\",\"\"],\"cwd\":\"a/./b\",\"timeout\":1500.2,"
			  "\"env\":{\"A\":\"1\",\"B\":\"\"},\"other\":7}"));
	ASSERT_EQ(r.argc, 2);
	ASSERT_STR(r.argv[0], "sh");
	ASSERT_STR(r.argv[1], "");
	ASSERT_STR(r.cwd, "/workspace/a/b");
	ASSERT_EQ(r.timeout_ms, 1501);
	ASSERT_EQ(r.env_count, 2);
	ASSERT_STR(r.env[0], "A=1");
	ASSERT_STR(r.env[1], "B=");
	/* A directory that is no string is none. */
	ASSERT_TRUE(parse(start_request_process, "{\"argv\":[\"sh\"],\"cwd\":7}"));
	ASSERT_STR(r.cwd, "/workspace");
	ASSERT_EQ(r.timeout_ms, 0);
	ASSERT_EQ(r.env_count, 0);
}

TEST(a_terminal_is_judged_in_the_order_of_the_contract)
{
	TERMINAL("{", 400, "Invalid JSON body");
	TERMINAL("null", 400, "Request body must be an object");
	TERMINAL("[\"sh\"]", 400, "Request body must be an object");
	TERMINAL("{\"cwd\":7}", 400, "argv must be a non-empty string array");
	TERMINAL("{\"argv\":[],\"cwd\":7}", 400, "argv must be a non-empty string array");
	TERMINAL("{\"argv\":[\"a\",1],\"cwd\":7}", 400, "argv must be a non-empty string array");
	TERMINAL("{\"argv\":[\"a\"],\"cwd\":7,\"env\":7}", 400, "cwd must be a string");
	TERMINAL("{\"argv\":[\"a\"],\"cwd\":null,\"env\":7}", 400, "cwd must be a string");
	TERMINAL("{\"argv\":[\"a\"],\"env\":null,\"cols\":0}", 400, "env must be an object");
	TERMINAL("{\"argv\":[\"a\"],\"env\":[],\"cols\":0}", 400, "env must be an object");
	TERMINAL("{\"argv\":[\"a\"],\"env\":{\"A\":1},\"cols\":0}", 400, "env values must be strings");
	TERMINAL("{\"argv\":[\"a\"],\"cols\":0,\"rows\":0}", 400, "cols must be a positive integer");
	TERMINAL("{\"argv\":[\"a\"],\"cols\":null}", 400, "cols must be a positive integer");
	TERMINAL("{\"argv\":[\"a\"],\"cols\":80,\"rows\":2.5}", 400, "rows must be a positive integer");
}

TEST(a_terminal_gets_what_was_asked_for)
{
	ASSERT_TRUE(parse(start_request_terminal, "{\"argv\":[\"sh\"],\"cwd\":\"/etc\",\"cols\":131}"));
	ASSERT_STR(r.cwd, "/etc"); /* not confined */
	ASSERT_EQ(r.cols, 131);
	ASSERT_EQ(r.rows, 24);
	start_request_done(&r);
}

TESTS(RUN(a_process_is_judged_in_the_order_of_the_contract),
      RUN(what_no_program_could_be_started_with_is_a_failed_launch), RUN(a_process_gets_what_was_asked_for),
      RUN(a_terminal_is_judged_in_the_order_of_the_contract), RUN(a_terminal_gets_what_was_asked_for))
