/*
 * input.h - the bytes of the archive as they come through the pipe, with gzip taken off.
 *
 * libarchive could do that, but it does not compare the checksum at the end of a gzip stream: damage inside
 * a file would be restored as if nothing were wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct input;

/* Borrows FD. */
struct input *input_new(int fd);
struct input *input_free(struct input *in);

/*
 * The next bytes, good until the next call. 1: there are some, 0: the end. -EBADMSG: damaged or cut off; or
 * what reading the descriptor gave.
 */
int input_next(struct input *in, const char **ret, size_t *ret_len, struct err *e);

/* Whether there was not a single byte. */
bool input_was_empty(const struct input *in);

/* A signal handler: the end that is seen from now on is not that of an archive, but an error. */
void input_break_off(int signo);
