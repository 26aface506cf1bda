#include "routes/router.h"

#include "unit.h"

#include "base/mem.h"

static struct router_match match;

static enum router_verdict look(const char *method, const char *path, enum profile profile)
{
	return router_match(method, path, profile, &match);
}

TEST(each_route_of_the_table_is_found_by_its_own_pattern)
{
	for (unsigned i = 0; i < routes_count; i++) {
		const struct route *route = &routes_table[i];
		char path[256] = "";

		for (const char *p = route->pattern; *p;) {
			if (*p == ':') {
				strcat(path, "abc234");
				p += strcspn(p, "/");
			} else if (*p == '*') {
				strcat(path, "workspace/a%20b");
				p++;
			} else {
				strncat(path, p++, 1);
			}
		}
		ASSERT_EQ(look(route->method, path, PROFILE_UNION), ROUTER_FOUND);
		ASSERT_TRUE(match.route == route);
		ASSERT_EQ(match.credentials, route->credentials);
		if (strstr(route->pattern, ":id")) ASSERT_STR(match.id, "abc234");
		if (strchr(route->pattern, '*')) ASSERT_STR(match.rest, "workspace/a%20b");
	}
}

TEST(what_only_resembles_a_route_is_none)
{
	static const char *const paths[] = {"/",
					    "/v1",
					    "/v1/",
					    "/v1/sandbox/",
					    "/healthy",
					    "/health/",
					    "/v1/sandbox/abc/",
					    "/v1/sandbox/abc/exec/",
					    "/v1/sandboxes",
					    "/v1/sandbox/abc/file",
					    "/v1/sandbox/abc/execs",
					    "/v1/sandbox//running"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		ASSERT_EQ(look("GET", paths[i], PROFILE_UNION), ROUTER_UNKNOWN);
		ASSERT_EQ(look("POST", paths[i], PROFILE_UNION), ROUTER_UNKNOWN);
	}
	ASSERT_EQ(look("PATCH", "/v1/sandbox/abc", PROFILE_UNION), ROUTER_UNKNOWN);
	ASSERT_EQ(look("get", "/health", PROFILE_UNION), ROUTER_UNKNOWN);
	ASSERT_EQ(look("OPTIONS", "/v1/sandbox", PROFILE_UNION), ROUTER_UNKNOWN);
}

TEST(an_id_of_the_wrong_form_is_judged_before_the_rest)
{
	char path[256] = "/v1/sandbox/";

	ASSERT_EQ(look("PATCH", "/v1/sandbox/BAD/zzz", PROFILE_UNION), ROUTER_BAD_ID);
	ASSERT_EQ(look("GET", "/v1/sandbox/foo;rm/running", PROFILE_UNION), ROUTER_BAD_ID);
	ASSERT_EQ(look("GET", "/v1/sandbox/a%62c/running", PROFILE_UNION), ROUTER_BAD_ID);
	ASSERT_EQ(look("GET", "/v1/sandbox/my-sandbox", PROFILE_UNION), ROUTER_BAD_ID);
	memset(path + 12, 'a', 128);
	ASSERT_EQ(look("GET", path, PROFILE_UNION), ROUTER_FOUND);
	ASSERT_EQ(strlen(match.id), 128);
	path[140] = 'a';
	ASSERT_EQ(look("GET", path, PROFILE_UNION), ROUTER_BAD_ID);
}

TEST(the_key_is_wanted_for_paths_that_are_no_routes_too)
{
	(void)look("PATCH", "/v1/sandbox/abc/zzz", PROFILE_UNION);
	ASSERT_EQ(match.credentials, CREDENTIALS_BEARER);
	(void)look("GET", "/v1/pool/nothing", PROFILE_UNION);
	ASSERT_EQ(match.credentials, CREDENTIALS_BEARER);
	(void)look("GET", "/v1/openapi.nothing", PROFILE_UNION);
	ASSERT_EQ(match.credentials, CREDENTIALS_TOKEN);
	(void)look("GET", "/v1/nothing", PROFILE_UNION);
	ASSERT_EQ(match.credentials, CREDENTIALS_NONE);
}

TEST(profiles_have_the_routes_of_their_dialect)
{
	ASSERT_EQ(look("POST", "/v1/sandbox/abc/exec", PROFILE_NEXT), ROUTER_UNKNOWN);
	ASSERT_EQ(look("POST", "/v1/sandbox/abc/exec", PROFILE_LEGACY), ROUTER_FOUND);
	ASSERT_EQ(look("GET", "/v1/sandbox/abc/processes", PROFILE_NEXT), ROUTER_FOUND);
	ASSERT_EQ(look("GET", "/v1/sandbox/abc/processes", PROFILE_STABLE), ROUTER_UNKNOWN);
	ASSERT_EQ(look("GET", "/v1/sandbox/abc/file/x", PROFILE_LEGACY), ROUTER_FOUND);
}

TEST(a_profile_is_a_first_segment)
{
	enum profile profile = PROFILE_UNION;

	ASSERT_STR(router_strip_profile("/next/v1/sandbox", &profile), "/v1/sandbox");
	ASSERT_EQ(profile, PROFILE_NEXT);
	ASSERT_STR(router_strip_profile("/union/health", &profile), "/health");
	ASSERT_EQ(profile, PROFILE_UNION);
	ASSERT_STR(router_strip_profile("/nextv1", &profile), "/nextv1");
	ASSERT_STR(router_strip_profile("/next", &profile), "/next");
	ASSERT_STR(router_strip_profile("/v1/next/", &profile), "/v1/next/");
	ASSERT_STR(router_strip_profile("*", &profile), "*");
	ASSERT_EQ(profile, PROFILE_UNION);
	ASSERT_EQ(profile_parse("preview", &profile), 0);
	ASSERT_EQ(profile, PROFILE_PREVIEW);
	ASSERT_EQ(profile_parse("nope", &profile), -EINVAL);
}

TEST(head_is_get_where_that_starts_nothing)
{
	ASSERT_EQ(look("HEAD", "/health", PROFILE_UNION), ROUTER_FOUND);
	ASSERT_EQ(look("HEAD", "/v1/sandbox/abc/running", PROFILE_UNION), ROUTER_FOUND);
	ASSERT_EQ(look("HEAD", "/v1/sandbox/abc/exec", PROFILE_UNION), ROUTER_UNKNOWN);
	ASSERT_EQ(look("HEAD", "/v1/sandbox/abc/file/workspace/x", PROFILE_UNION), ROUTER_FOUND);
	ASSERT_EQ(match.route->sandbox, LOOKS);
}

TEST(a_key_is_compared_to_the_byte)
{
	ASSERT_TRUE(router_may(CREDENTIALS_BEARER, "k3y", "Bearer k3y", NULL));
	ASSERT_TRUE(router_may(CREDENTIALS_BEARER, "k3y", "bEARER k3y", NULL));
	ASSERT_FALSE(router_may(CREDENTIALS_BEARER, "k3y", "Bearer k3Y", NULL));
	ASSERT_FALSE(router_may(CREDENTIALS_BEARER, "k3y", "Bearer  k3y", NULL));
	ASSERT_FALSE(router_may(CREDENTIALS_BEARER, "k3y", "Bearer k3", NULL));
	ASSERT_FALSE(router_may(CREDENTIALS_BEARER, "k3y", "k3y", NULL));
	ASSERT_FALSE(router_may(CREDENTIALS_BEARER, "k3y", "", NULL));
	ASSERT_FALSE(router_may(CREDENTIALS_BEARER, "k3y", NULL, NULL));
	ASSERT_TRUE(router_may(CREDENTIALS_BEARER, "", NULL, NULL));
	ASSERT_TRUE(router_may(CREDENTIALS_NONE, "k3y", NULL, NULL));
}

TEST(a_query_brings_the_key_only_where_that_is_allowed)
{
	ASSERT_TRUE(router_may(CREDENTIALS_TOKEN, "k y", NULL, "a=b&token=k+y"));
	ASSERT_FALSE(router_may(CREDENTIALS_TOKEN, "k3y", NULL, "token=k3"));
	ASSERT_FALSE(router_may(CREDENTIALS_BEARER, "k3y", NULL, "token=k3y"));
	ASSERT_TRUE(router_may(CREDENTIALS_SOCKET, "k3y", NULL, "authorization=Bearer%20k3y"));
	ASSERT_TRUE(router_may(CREDENTIALS_SOCKET, "k3y", NULL, "authorization=Bearer+k3y"));
	ASSERT_FALSE(router_may(CREDENTIALS_SOCKET, "k3y", NULL, "authorization=k3y"));
	ASSERT_FALSE(router_may(CREDENTIALS_BEARER, "k3y", NULL, "authorization=Bearer%20k3y"));
}

TESTS(RUN(each_route_of_the_table_is_found_by_its_own_pattern), RUN(what_only_resembles_a_route_is_none),
      RUN(an_id_of_the_wrong_form_is_judged_before_the_rest),
      RUN(the_key_is_wanted_for_paths_that_are_no_routes_too), RUN(profiles_have_the_routes_of_their_dialect),
      RUN(a_profile_is_a_first_segment), RUN(head_is_get_where_that_starts_nothing),
      RUN(a_key_is_compared_to_the_byte), RUN(a_query_brings_the_key_only_where_that_is_allowed))
