/*
 * routes.h - what the server serves: each request of the contract, checked in the contract's order, handed
 * down to the sandbox room and translated back. One file per resource; the table is routes.def.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "routes/router.h"

struct exchange;
struct loop;
struct pool;
struct routes;
struct sandboxes;

struct routes_settings {
	const char *api_key;          /* "" or NULL: no authentication */
	const enum profile *profiles; /* of requests without a prefix: one for each listener */
	uint64_t file_limit;          /* bytes of a file PUT; 0: none */
	uint64_t hydrate_limit;       /* bytes of an archive that is hydrated; 0: none */
	size_t json_limit;            /* bytes of a JSON body */
	unsigned keepalive_ms;        /* silence of a stream before a comment; 0: none */
	bool kill_on_disconnect;      /* commands, unless the request says otherwise */
	uint32_t uid;                 /* who commands run as, inside */
	const char *const *instances; /* names that may be asked for, ended by NULL */
};

/* Borrows LOOP, ALL, POOL, and the texts of SETTINGS; copies the rest. */
struct routes *routes_new(struct loop *loop, struct sandboxes *all, struct pool *pool,
			  const struct routes_settings *settings);
struct routes *routes_free(struct routes *r);

/* For http_callbacks.on_request, CTX a struct routes. */
void routes_on_request(struct exchange *x, void *ctx);

/* The sandbox id that the request of X named, "" for none: for the access log. */
const char *routes_sandbox_of(const struct exchange *x);
