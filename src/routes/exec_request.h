/* exec_request.h - the body of POST /exec: judged in the order of API.md 3.5, bytes in and value out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/path.h"

struct exec_request {
	const char **argv;
	uint32_t argc;
	char **env; /* "NAME=value" */
	uint32_t env_count;
	char cwd[PATH_LIMIT];  /* inside /workspace */
	bool cwd_given;        /* otherwise CWD is /workspace */
	uint64_t timeout_ms;   /* 0: none */
	char timeout_text[32]; /* as it was sent */
	const char *input;     /* stdin; NULL: none */
	size_t input_len;
	json_t *json; /* owns the texts above */
	char **made;  /* texts of argv that were no strings in the JSON */
	uint32_t made_count;
};

struct exec_fault {
	unsigned status; /* 400 or 403, both invalid_request */
	const char *message;
};

/*
 * SESSION: the Session-Id header or NULL. False: *FAULT says why. RET is then empty; exec_request_done() is
 * fine.
 */
bool exec_request_parse(const char *body, size_t len, const char *session, struct exec_request *ret,
			struct exec_fault *fault);
void exec_request_done(struct exec_request *r);
