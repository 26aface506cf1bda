/* Whatever a Range header says: a part lies inside the file and has at least one byte. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "routes/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const uint64_t sizes[] = {0, 1, 10, 1ull << 40, UINT64_MAX};
	auto_free char *header = mem_strndup((const char *)bytes, len);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint64_t first = 0, count = 0;

		if (range_parse(header, sizes[i], &first, &count) != RANGE_PART) continue;
		assert(count > 0 && first < sizes[i] && count <= sizes[i] - first);
	}
	return 0;
}
