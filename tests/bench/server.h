/* server.h - the `tombolo serve` that is measured: started on a free port with a state directory of its own.
 */
#pragma once

#include <sys/types.h>

struct endpoint;
struct err;
struct server;

/*
 * TOMBOLO is the program; its state and its log (server.log) go below DIR. Serving on return. The server is
 * told to end when we die, whatever we die of.
 */
int server_start(const char *tombolo, const char *dir, struct server **ret, struct endpoint *ret_at,
		 struct err *e);

/* SIGTERM, and waits until it is gone. -EPROTO when it did not end as a server should. NULL is fine. */
int server_stop(struct server *s, struct err *e);

pid_t server_pid(const struct server *s);
const char *server_program(const struct server *s);
