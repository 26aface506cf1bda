/* floor_local.h - pieces that the floors of moved bytes share. */
#pragma once

struct err;

#define COPY_SIZE (64 * 1024) /* what stays in the cache: larger ones were slower */

/* A listening TCP socket on a free port of the loopback. */
int local_listen(int *ret_fd, unsigned *ret_port, struct err *e);
int local_connect(unsigned port, int *ret_fd, struct err *e);

/* Accepts one connection, without delays for small writes, and closes LISTEN_FD. The connection, or -1. */
int local_accept(int listen_fd);
