/*
 * ustar.h - the header blocks of one archive member, in the one dialect that every client of ours accepts.
 *
 * Plain ustar (POSIX.1-1988). A name or link target that does not fit goes into a pax `x` header in front of
 * it, which holds `path` and `linkpath` and nothing else: no base-256 numbers, no GNU `L` or `K`, no pax
 * `size`.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define USTAR_BLOCK    512
#define USTAR_SIZE_MAX 077777777777ull /* 8 GiB - 1: eleven octal digits */

enum ustar_type {
	USTAR_FILE = '0',
	USTAR_SYMLINK = '2',
	USTAR_DIRECTORY = '5',
	USTAR_PAX = 'x', /* ustar_write() makes these itself */
};

struct ustar_member {
	enum ustar_type type;
	const char *name; /* any bytes but NUL; a directory's ends with '/' */
	size_t name_len;
	const char *target; /* of a symlink */
	size_t target_len;
	unsigned mode;     /* permission bits, set-id and sticky bits included */
	uint64_t uid, gid; /* too large for the field: written as 65534, which means "nobody" everywhere */
	uint64_t size;     /* at most USTAR_SIZE_MAX; 0 for all but files */
	int64_t mtime;     /* seconds; moved to the nearest one the field can hold */
};

/* Bytes that ustar_write() will write: a multiple of USTAR_BLOCK. */
size_t ustar_header_size(const struct ustar_member *m);

/* Writes the header blocks of M to OUT. */
void ustar_write(const struct ustar_member *m, char *out);

/* How many zero bytes follow SIZE bytes of content. */
static inline size_t ustar_padding(uint64_t size)
{
	return (size_t)(-size % USTAR_BLOCK);
}
