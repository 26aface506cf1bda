/*
 * out.h - the archive on its way out: small things collect in one buffer, big ones pass it by.
 *
 * One buffer is reused for the whole run: what costs here is touching new pages and entering the kernel, in
 * this order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Content up to this size is read straight into the buffer behind its header. */
#define OUT_SMALL ((size_t)128 << 10)

struct out {
	int fd;
	bool splices; /* fd is a pipe, and so far files could be spliced into it */
	char *data;
	size_t len;
};

#define auto_out __attribute__((cleanup(out_done)))

/* Borrows FD. */
void out_init(struct out *o, int fd);
void out_done(struct out *o);

/* 0 or -errno. */
int out_flush(struct out *o);

/* Room for LEN bytes, to be written in place and claimed by adding to len; flushes first when there is none.
 */
int out_reserve(struct out *o, size_t len, char **ret);
int out_zeros(struct out *o, uint64_t count);

/*
 * Moves up to SIZE bytes from FILE_FD to the output. *RET is how many there were: fewer when the file ends
 * early, and then *RET_READ_ERROR is 0 or the -errno of the read. The result is about the output only.
 */
int out_copy(struct out *o, int file_fd, uint64_t size, uint64_t *ret, int *ret_read_error);
