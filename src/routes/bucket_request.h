/*
 * bucket_request.h - the bodies of POST /mount and /unmount (API.md 3.15, 3.16): judged in the contract's
 * order, bytes in and value out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/path.h"
#include "routes/router.h"

/* What is wrong, for a 400; NULL: nothing. */
typedef const char *bucket_fault;

struct mount_request {
	json_t *json;                 /* owns the texts */
	const char *bucket, *binding; /* either may be NULL */
	const char *endpoint;         /* NULL: BINDING says which bucket */
	const char *mount_path;
	const json_t *options;
};

/* RET is to be done in any case. */
bucket_fault mount_request_parse(const char *body, size_t len, enum profile profile,
				 struct mount_request *ret);
void mount_request_done(struct mount_request *r);

/* PATH: the mount's, normalised. */
bucket_fault unmount_request_parse(const char *body, size_t len, char path[PATH_LIMIT]);
