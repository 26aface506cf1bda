/*
 * router.h - which route a request means, and whether it may have it: API.md 1.1, steps 1 to 4, as pure
 * functions.
 */
#pragma once

#include <stdbool.h>

#include "base/id.h"

enum profile { PROFILE_UNION, PROFILE_LEGACY, PROFILE_STABLE, PROFILE_PREVIEW, PROFILE_NEXT };
#define PROFILES 5

#define PROFILES_ALL   0x1fu
#define PROFILES_NEW   (1u << PROFILE_UNION | 1u << PROFILE_NEXT)
#define PROFILES_OLD   (PROFILES_ALL & ~(1u << PROFILE_NEXT))
#define PROFILES_LATER (PROFILES_ALL & ~(1u << PROFILE_LEGACY))
#define PROFILES_FIRST (1u << PROFILE_UNION | 1u << PROFILE_LEGACY)

enum credentials { CREDENTIALS_NONE, CREDENTIALS_BEARER, CREDENTIALS_TOKEN, CREDENTIALS_SOCKET };
enum sandbox_need { NEEDS_NONE, LOOKS, STARTS };

struct route {
	const char *method, *pattern;
	enum credentials credentials;
	unsigned profiles;
	enum sandbox_need sandbox;
	const char *operation;
};

/* The table of routes.def, in its order; who handles which is routes.c's. */
extern const struct route routes_table[];
extern const unsigned routes_count;

/* "union", "legacy", ...; -EINVAL. */
int profile_parse(const char *name, enum profile *ret);
const char *profile_name(enum profile profile);

/* Step 1: the path behind a profile prefix, "/next/v1/x" → "/v1/x" and *PROFILE; otherwise PATH itself. */
const char *router_strip_profile(const char *path, enum profile *profile);

enum router_verdict {
	ROUTER_FOUND,
	ROUTER_BAD_ID,  /* step 2: below /v1/sandbox/ with what no id looks like */
	ROUTER_UNKNOWN, /* no such route, or not with this method */
};

struct router_match {
	const struct route *route;    /* NULL unless found */
	enum credentials credentials; /* what this path asks for, whether it is a route or not */
	char id[SANDBOX_ID_MAX + 1];  /* "" without one */
	const char *rest;             /* what "*" took, inside PATH; NULL without one */
	const char *part; /* what the name after ":id" took, inside PATH, still encoded; or NULL */
	size_t part_len;
};

/* PATH is normalised (http/target.h) and has no profile prefix. A bad id is judged before anything else. */
enum router_verdict router_match(const char *method, const char *path, enum profile profile,
				 struct router_match *ret);

/* Step 3. AUTHORIZATION and QUERY may be NULL. KEY "" or NULL: everybody may. */
bool router_may(enum credentials credentials, const char *key, const char *authorization, const char *query);

/* A unknown path below /v1 gets another text than one outside. */
bool router_is_api(const char *path);
