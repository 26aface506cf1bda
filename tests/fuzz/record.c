/* record.c - the record of a sandbox, as a damaged disk may give it back: what is taken for good must survive
 * the way through the writer. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[RECORD_MAX], text_again[RECORD_MAX];
	struct record rec, again;

	if (record_parse((const char *)data, size, &rec, NULL) < 0) return 0;
	size_t len = record_format(&rec, text);
	if (record_parse(text, len, &again, NULL) < 0) abort();
	if (record_format(&again, text_again) != len || memcmp(text, text_again, len) != 0) abort();
	return 0;
}
