/* floor_spawn.h - what it costs the host itself to run a program and know how it ended. */
#pragma once

struct err;

/* posix_spawn of PATH with two pipes as stdout and stderr, both read to their end, then waited for. */
int spawn_and_wait(const char *path, struct err *e);
