/* exec.h - operations of the sandbox API as the measurements need them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct client;
struct err;

/* POST /v1/sandbox: reserves an id. */
int sandbox_create(struct client *c, char *ret_id, size_t size, struct err *e);
int sandbox_delete(struct client *c, const char *id, struct err *e);

/* Runs BODY (the request's JSON) in sandbox ID; counts the bytes of stdout. Any end but exit code 0 is
 * -EPROTO. */
int sandbox_exec(struct client *c, const char *id, const char *body, uint64_t *ret_bytes, struct err *e);
