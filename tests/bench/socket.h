/* socket.h - a WebSocket as a client of our own needs it for measuring: binary both ways, no fragments of
 * ours. */
#pragma once

#include <stdint.h>

#include "client.h"

struct socket {
	struct client client;
	uint64_t left; /* of the payload we are in */
	bool is_binary;
	const char *bytes; /* received and not looked at */
	size_t len;
};

/* Upgrades GET PATH. socket_done is fine on a zeroed socket. */
int socket_open(struct socket *s, const struct endpoint *to, const char *path, struct err *e);
void socket_done(struct socket *s);

/* One binary message of at most 125 bytes, in one system call. */
int socket_send(struct socket *s, const void *bytes, size_t len, struct err *e);

/* The next slice of a text (*RET_BINARY false) or binary message, good until the next call. Its length. */
ssize_t socket_receive(struct socket *s, bool *ret_binary, const char **ret_bytes, struct err *e);

/* Throws away what comes until COUNT bytes of binary messages have come. */
int socket_skip(struct socket *s, uint64_t count, struct err *e);
