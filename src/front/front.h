/*
 * front.h - the rooms of the network-facing program, put together on one loop.
 *
 * Theory of operation: at first there is only the control link. Connections wait in the sockets' backlog
 * until the keeper says `ready`; then the server begins. It ends on SIGTERM, or when the keeper is gone (a
 * new keeper starts a new front, which serves the same sockets): nothing new is accepted, what runs may
 * finish for a while, then the rest is told that the server ends, and we leave. Sandboxes and their commands
 * go on; they are the keeper's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "http/http.h"
#include "routes/routes.h"
#include "sandbox/pool.h"

struct err;
struct front;

#define FRONT_LISTEN_MAX 8

struct front_settings {
	struct routes_settings routes;
	struct pool_policy pool;
	struct http_limits http;
	uint64_t sleep_after_ms; /* 0: never */
	int control_fd;          /* taken */
	const int *listen_fds;   /* taken once the server begins */
	size_t listen_count;
	enum profile profiles[FRONT_LISTEN_MAX]; /* for routes.profiles */
};

/* Borrows SETTINGS. */
int front_new(const struct front_settings *settings, struct front **ret, struct err *e);

/* Until the end. 0, or the exit status of a server that could not begin. */
int front_run(struct front *f);
struct front *front_free(struct front *f);
