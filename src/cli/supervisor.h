/*
 * supervisor.h - keeps a keeper running. The last thing `tombolo serve` does.
 *
 * Theory of operation: we hold what must outlive a keeper: the state directory's lock, the settings, the
 * listening sockets. Whatever a dead keeper leaves behind becomes our child (we are the subreaper) and is
 * reaped here; the next keeper takes over its sandboxes. The keeper tells us over a socket when it serves, or
 * why it cannot; when that socket ends it knows that we are gone.
 */
#pragma once

#include <stddef.h>

struct supervised {
	int lock_fd, config_fd;
	const int *listen_fds;
	size_t listen_count;
	void (*on_ready)(void *ctx); /* once, when the first keeper serves */
	void *ctx;
};

/* Runs until SIGTERM, SIGINT or SIGHUP has ended the keeper. The exit status. */
int supervise(const struct supervised *s);
