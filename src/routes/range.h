/* range.h - the Range header of one part (RFC 9110, 14.2) against a size: bytes in, value out. */
#pragma once

#include <stdint.h>

enum range_verdict {
	RANGE_WHOLE, /* none, or one that is not for us (several parts, another unit): the whole file */
	RANGE_PART,
	RANGE_UNSATISFIABLE,
};

/* HEADER may be NULL. */
enum range_verdict range_parse(const char *header, uint64_t size, uint64_t *ret_first, uint64_t *ret_len);
