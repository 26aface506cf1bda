/* excludes.h - the parameter `excludes` of a persist (API.md 3.10): bytes in and value out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define EXCLUDES_MAX      4096
#define EXCLUDES_TEXT_MAX ((size_t)14 << 10)

struct excludes {
	struct buf text; /* owns what ITEMS point to */
	const char **items;
	uint32_t count;
};

struct excludes_fault {
	unsigned status; /* 400 or 502 */
	const char *message;
};

/*
 * QUERY is that of the request, NULL for none. STRICT: the dialect `next`, which refuses what it would not be
 * able to leave out; the others take "/x" and "./x" as "x", and what is empty then leaves out nothing. False:
 * *FAULT says why, and RET is empty.
 */
bool excludes_parse(const char *query, bool strict, struct excludes *ret, struct excludes_fault *fault);
void excludes_done(struct excludes *e);
