/*
 * target.h - the request target taken apart: "/v1/x/%2e%2e/y?a=b" and "http://host/v1/y". Pure.
 *
 * Dot segments are resolved here, once, in every spelling that a URL parser knows, so that what the
 * router judges is what the handler gets. All other percent-encoding stays as it was sent: whether %2F is
 * a slash is the route's business.
 */
#pragma once

#include <stddef.h>

struct buf;

struct target {
	const char *authority; /* "host:port" of an absolute form, "" otherwise */
	const char *path;      /* normalised: begins with '/' and has no dot segments; or "*" */
	const char *query;     /* raw, without its question mark; NULL when there is none */
	size_t origin_at;      /* where path[?query] begins in the text; the path may be empty */
};

/* Most bytes that target_parse() writes for a target of LEN bytes. */
#define TARGET_ROOM(len) ((len) + 4)

/*
 * The strings of *RET live in OUT, of TARGET_ROOM(LEN) bytes. -EINVAL: no form that we answer, or it has a
 * fragment.
 */
int target_parse(const char *text, size_t len, char *out, struct target *ret);

/*
 * Percent-decodes LEN bytes once; what is no valid escape stays literally. OUT has room for LEN + 1 and
 * gets a NUL. -EINVAL: a NUL byte was encoded, which no name of ours can hold.
 */
int target_decode(const char *text, size_t len, char *out, size_t *ret_len);

/*
 * The first value of the parameter NAME in QUERY (NULL is fine), decoded with '+' as a space, added to VALUE.
 * -ENOENT: not there; -EINVAL: it holds a NUL byte; -E2BIG: does not fit into VALUE.
 */
int target_query_get(const char *query, const char *name, struct buf *value);
