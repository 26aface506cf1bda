#include "routes/tunnel_request.h"

#include "base/mem.h"
#include "unit.h"

static bool port(const char *text, uint16_t *ret)
{
	return tunnel_port_parse(text, strlen(text), ret);
}

TEST(a_port_is_a_javascript_number_that_may_be_one)
{
	static const char *const good[] = {"8080", "8080.0", "0x1F90", "8.08e3", "%208080", "%38080"};
	static const char *const bad[] = {"",       "80",  "1023",  "65536",   "3000", "3e3",     "0xBB8",
					  "8080.5", "abc", "-8080", "8080%00", "NaN",  "Infinity"};
	uint16_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!port(good[i], &n) || n != 8080) fail_msg("'%s' is port %u", good[i], n);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (port(bad[i], &n)) fail_msg("'%s' is a port", bad[i]);
	ASSERT_TRUE(port("1024", &n) && port("65535", &n));
}

struct body {
	const char *body, *says, *name;
};

TEST(a_body_may_name_the_tunnel)
{
	static const struct body bodies[] = {
		{"", NULL, ""},
		{" \n\t ", NULL, ""},
		{"{}", NULL, ""},
		{"[]", NULL, ""},
		{"null", NULL, ""},
		{"\"x\"", NULL, ""},
		{"{", "Invalid JSON body", NULL},
		{"{\"name\":null}", "name must be a string when provided", NULL},
		{"{\"name\":7}", "name must be a string when provided", NULL},
		{"{\"name\":\"\"}", "1\u201363 characters", NULL},
		{"{\"name\":\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff1234\"}",
		 "1\u201363 characters", NULL},
		{"{\"name\":\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123\"}", NULL,
		 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123"},
		{"{\"name\":\"Web\"}", "valid DNS label", NULL},
		{"{\"name\":\"-a\"}", "valid DNS label", NULL},
		{"{\"name\":\"a-\"}", "valid DNS label", NULL},
		{"{\"name\":\"a.b\"}", "valid DNS label", NULL},
		{"{\"name\":\"a\\u0000\"}", "valid DNS label", NULL},
		{"{\"name\":\"\u00e9\"}", "valid DNS label", NULL},
		{"{\"name\":\"a\"}", NULL, "a"},
		{"{\"name\":\"my-web-1\"}", NULL, "my-web-1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		char name[TUNNEL_NAME_MAX + 1];
		const char *fault = tunnel_body_parse(bodies[i].body, strlen(bodies[i].body), name);

		if ((fault == NULL) != (bodies[i].says == NULL) || (fault && !strstr(fault, bodies[i].says)))
			fail_msg("%s: '%s'", bodies[i].body, fault);
		if (!fault) ASSERT_STR(name, bodies[i].name);
	}
}

TESTS(RUN(a_port_is_a_javascript_number_that_may_be_one), RUN(a_body_may_name_the_tunnel))
