/* environment.h - the environment of a command: the sandbox's base, overlaid by the request's. Never our own:
 * we have none. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct wire_list;

#define ENVIRONMENT_SPARE 3    /* unused slots before the NULL: two for execute_directly(), one to put */
#define ENVIRONMENT_MAX   4096 /* variables of one request */

struct environment {
	char **vars; /* "NAME=value", NULL-terminated */
	size_t count;
	char *base; /* memory of the base's texts; private */
};

/*
 * OVERLAY's entries replace those of the same name, a later one an earlier one; entries without '=' or with
 * an empty name are dropped. The result points into OVERLAY's packet. -E2BIG: more than ENVIRONMENT_MAX.
 */
int environment_build(uint32_t uid, const char *cwd, const struct wire_list *overlay, struct environment *ret,
		      struct err *e);

/* Replaces what there is of that name, or adds it: once. VAR is borrowed. */
void environment_put(struct environment *env, char *var);
void environment_done(struct environment *env);

/* The value of NAME, or NULL. */
const char *environment_get(const struct environment *env, const char *name);
