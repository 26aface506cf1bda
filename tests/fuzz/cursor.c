/* Whatever a cursor is: what passes is exactly what its parts would be written as. */
#include <assert.h>
#include <string.h>

#include "routes/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char store[CURSOR_STORE_MAX + 1], again[CURSOR_MAX];
	uint64_t seq;

	if (cursor_decode((const char *)bytes, len, store, &seq) < 0) return 0;
	cursor_encode(store, seq, again);
	assert(strlen(again) == len && memcmp(again, bytes, len) == 0);
	return 0;
}
