/* floor_pty.h - a terminal with as little as possible between it and whoever looks at it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct err;

/* A process that copies between a terminal, on which `cat` runs, and a TCP connection. */
struct pty_relay {
	int fd; /* our end of the connection */
	pid_t relay, cat;
};

int pty_relay_start(struct pty_relay *ret, struct err *e);
void pty_relay_end(struct pty_relay *r); /* fine on a zeroed one */

/*
 * Runs ARGV on a terminal that we read ourselves, says a line to it, and counts BYTES of output. *RET_US is
 * from the line to the last of them.
 */
int pty_read_floor(char *const argv[], uint64_t bytes, double *ret_us, struct err *e);
