/* session_request.h - the body of POST /session (API.md 3.13): bytes in and value out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/path.h"

/* Of the requests of the dialect `legacy` that name none. */
#define SESSION_DEFAULT "default"

struct session_request {
	char id[NAME_ID_MAX + 1]; /* "": one is to be made up */
	char cwd[PATH_LIMIT];
	char **env; /* "NAME=value" */
	uint32_t env_count;
	uint64_t timeout_ms; /* 0: none */
};

/* A body that is no JSON object asks for nothing. NULL, or why it is refused: RET is then empty. */
const char *session_request_parse(const char *body, size_t len, struct session_request *ret);
void session_request_done(struct session_request *r);
