/* answers.h - inside the room: the answers that all routes share (API.md 1.4, 1.6 and 2). */
#pragma once

#include <jansson.h>

#include "sandbox/operations.h"
#include "sandbox/registry.h"

struct exchange;
struct request;

/* A JSON result; takes JSON. */
void answer_json(struct exchange *x, unsigned status, json_t *json);
void answer_ok(struct exchange *x);      /* {"ok":true} */
void answer_nothing(struct exchange *x); /* 204 */

/* {error, code} with further headers. */
void answer_error_with(struct exchange *x, unsigned status, const char *code, const char *message,
		       const char *headers);
void answer_invalid(struct exchange *x, const char *message);
void answer_too_large(struct exchange *x, const char *what, uint64_t bytes, uint64_t limit);

/* No such route: PATH as router_is_api() takes it. */
void answer_no_route(struct exchange *x, const char *path);

/* A sandbox that could not be started. */
void answer_not_started(struct request *rq, const struct sandbox_outcome *outcome);
void answer_no_keeper(struct exchange *x);

/* As json_string(), for bytes that a stranger chose: what is not UTF-8 becomes question marks. Never NULL. */
json_t *json_of_text(const char *text, size_t len);
