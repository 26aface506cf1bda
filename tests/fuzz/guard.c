/*
 * The guard of request heads: the verdict does not depend on how the bytes are cut, and what it lets
 * through has no line end but CRLF, no control character, and ends with its first empty line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/guard.h"

#define HEAD_MAX 4096

static enum guard_fault run(struct guard *g, const char *bytes, size_t len, size_t step)
{
	enum guard_fault fault = GUARD_FINE;
	size_t used;

	for (size_t at = 0; at < len && fault == GUARD_FINE && !g->complete; at += used) {
		fault = guard_feed(g, bytes + at, len - at < step ? len - at : step, HEAD_MAX, &used);
		if (used == 0 || used > step) abort();
	}
	return fault;
}

static void check_head(const char *head, size_t len)
{
	if (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0) abort();
	if (memmem(head, len - 1, "\r\n\r\n", 4)) abort();
	for (size_t i = 0; i < len; i++) {
		unsigned char b = (unsigned char)head[i];

		if (b == '\r' && head[i + 1] != '\n') abort();
		if (b == '\n' && (i == 0 || head[i - 1] != '\r')) abort();
		if (b == '\n' && i + 1 < len && (head[i + 1] == ' ' || head[i + 1] == '\t')) abort();
		if ((b < 0x20 && !strchr("\t\r\n", b)) || b == 0 || b == 0x7f) abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct guard whole = {0}, pieces = {0}, trailers = guard_of_trailers();
	struct guard_facts facts = {0};
	size_t half = size / 2;

	enum guard_fault fault = run(&whole, bytes, size, SIZE_MAX);
	if (run(&pieces, bytes, size, 3) != fault || pieces.seen != whole.seen || pieces.lines != whole.lines)
		abort();
	if (fault != GUARD_FINE && (guard_status(fault) < 400 || !*guard_text(fault))) abort();
	if (whole.complete) check_head(bytes + whole.skipped, whole.seen - whole.skipped);
	(void)run(&trailers, bytes, size, 7);
	guard_note(&facts, bytes, half, bytes + half, size - half);
	(void)guard_judge(&facts, 1, size & 1);
	return 0;
}
