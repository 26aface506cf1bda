/*
 * start_request.h - the bodies of POST /processes and POST /terminals: judged in the order of API.md 3.18 and
 * 3.23, bytes in and value out.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/path.h"

struct start_request {
	const char **argv;
	uint32_t argc;
	char **env; /* "NAME=value" */
	uint32_t env_count;
	char cwd[PATH_LIMIT];
	uint64_t timeout_ms; /* of a process; 0: none */
	uint16_t cols, rows; /* of a terminal */
	json_t *json;        /* owns the texts of argv */
};

struct start_fault {
	unsigned status;
	const char *code, *message;
};

/* False: *FAULT says why. RET is then empty; start_request_done() is fine. */
bool start_request_process(const char *body, size_t len, struct start_request *ret,
			   struct start_fault *fault);
bool start_request_terminal(const char *body, size_t len, struct start_request *ret,
			    struct start_fault *fault);
void start_request_done(struct start_request *r);
