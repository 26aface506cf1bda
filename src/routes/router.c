#include "routes/router.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "http/http.h"
#include "http/target.h"

/* ---- profiles ---- */

static const char *const profile_names[PROFILES] = {
	[PROFILE_UNION] = "union",     [PROFILE_LEGACY] = "legacy", [PROFILE_STABLE] = "stable",
	[PROFILE_PREVIEW] = "preview", [PROFILE_NEXT] = "next",
};

int profile_parse(const char *name, enum profile *ret)
{
	for (unsigned i = 0; i < ARRAY_LEN(profile_names); i++) {
		if (strcmp(name, profile_names[i]) != 0) continue;
		*ret = (enum profile)i;
		return 0;
	}
	return -EINVAL;
}

const char *profile_name(enum profile profile)
{
	return profile_names[profile];
}

const char *router_strip_profile(const char *path, enum profile *profile)
{
	for (unsigned i = 0; i < ARRAY_LEN(profile_names); i++) {
		size_t n = strlen(profile_names[i]);

		if (path[0] != '/' || strncmp(path + 1, profile_names[i], n) != 0 || path[1 + n] != '/')
			continue;
		*profile = (enum profile)i;
		return path + 1 + n;
	}
	return path;
}

/* ---- matching ---- */

const struct route routes_table[] = {
/* clang-format off */
#define ROUTE(method, pattern, handler, credentials, profiles, sandbox, operation)                           \
	{#method, pattern, CREDENTIALS_##credentials, PROFILES_##profiles, sandbox, #operation},
/* clang-format on */
#include "routes/routes.def"
};
const unsigned routes_count = ARRAY_LEN(routes_table);

/* Whether PATH is PREFIX itself or below it. */
static bool is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool router_is_api(const char *path)
{
	return is_below(path, "/v1");
}

/*
 * What a path asks for before it is known whether there is such a route: nobody learns that without the key.
 */
static enum credentials credentials_of(const char *path)
{
	if (is_below(path, "/v1/sandbox") || is_below(path, "/v1/pool")) return CREDENTIALS_BEARER;
	if (strncmp(path, "/v1/openapi", 11) == 0) return CREDENTIALS_TOKEN;
	return CREDENTIALS_NONE;
}

/* Walks PATTERN and PATH together; fills what the pattern takes from the path. */
static bool pattern_match(const char *pattern, const char *path, struct router_match *ret)
{
	while (*pattern && *pattern != '*') {
		if (*pattern != ':') {
			if (*pattern++ != *path++) return false;
			continue;
		}
		size_t n = strcspn(path, "/");
		if (n == 0) return false; /* an id of the wrong form does not get this far */
		size_t name = strcspn(pattern, "/");
		if (name != 3 || memcmp(pattern, ":id", 3) != 0) {
			ret->part = path;
			ret->part_len = n;
		}
		path += n;
		pattern += name;
	}
	if (*pattern == '*') ret->rest = path;
	else if (*path) return false;
	return true;
}

static bool method_match(const struct route *route, const char *method)
{
	if (strcmp(route->method, method) == 0) return true;
	return strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0 && route->sandbox != STARTS;
}

enum router_verdict router_match(const char *method, const char *path, enum profile profile,
				 struct router_match *ret)
{
	static const char below[] = "/v1/sandbox/";

	*ret = (struct router_match){.credentials = credentials_of(path)};
	if (strncmp(path, below, sizeof below - 1) == 0) {
		const char *id = path + sizeof below - 1;
		size_t n = strcspn(id, "/");

		if (n && !id_is_sandbox(id, n)) return ROUTER_BAD_ID;
		memcpy(ret->id, id, n);
		ret->id[n] = '\0';
	}
	for (unsigned i = 0; i < routes_count; i++) {
		const struct route *route = &routes_table[i];

		if (!(route->profiles & 1u << profile)) continue;
		if (!method_match(route, method) || !pattern_match(route->pattern, path, ret)) continue;
		ret->route = route;
		ret->credentials = route->credentials;
		return ROUTER_FOUND;
	}
	return ROUTER_UNKNOWN;
}

/* ---- credentials ---- */

static bool is_bearer(const char *authorization, const char *key)
{
	return authorization && strncasecmp(authorization, "bearer ", 7) == 0 &&
	       http_equal_secret(authorization + 7, key);
}

#define CREDENTIAL_MAX 4096

bool router_may(enum credentials credentials, const char *key, const char *authorization, const char *query)
{
	auto_buf struct buf value = buf_with_cap(CREDENTIAL_MAX);

	if (credentials == CREDENTIALS_NONE || !key || !*key) return true;
	if (is_bearer(authorization, key)) return true;
	if (credentials == CREDENTIALS_TOKEN && target_query_get(query, "token", &value) == 0)
		return http_equal_secret(buf_text(&value), key);
	if (credentials == CREDENTIALS_SOCKET && target_query_get(query, "authorization", &value) == 0)
		return is_bearer(buf_text(&value), key);
	return false;
}
