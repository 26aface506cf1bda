/*
 * source.h - the members of an archive that a stranger sends through a pipe: libarchive, narrowed to tar
 * formats (v7, ustar, GNU, pax) that are plain or compressed by gzip, xz, zstd or bzip2, and stricter about a
 * broken end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct archive_entry;
struct source;

/* Bytes of the current member; what lies between two blocks is a hole. Good until the next call. */
struct source_block {
	const char *bytes;
	size_t len;
	uint64_t offset;
};

/* Borrows FD. */
int source_new(int fd, struct source **ret, struct err *e);
struct source *source_free(struct source *s);

/*
 * The next member, which belongs to S and is good until the next call. 1: there is one. 0: the end mark was
 * there, and the input has been read to its end. -EBADMSG: this is not a whole archive.
 */
int source_next(struct source *s, struct archive_entry **ret, struct err *e);

/* Content of that member. 1: there is some, 0: that was all, or a negative errno as above. */
int source_data(struct source *s, struct source_block *ret, struct err *e);
