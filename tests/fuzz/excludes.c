/* Whatever a query is: no entry that passes climbs, begins with a slash, or names the root. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "routes/excludes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	auto_free char *query = mem_strndup((const char *)bytes, len);

	for (int strict = 0; strict < 2; strict++) {
		struct excludes_fault fault = {0};
		struct excludes e;

		if (!excludes_parse(query, strict, &e, &fault)) {
			assert((fault.status == 400 || fault.status == 502) && fault.message[0]);
			continue;
		}
		for (uint32_t i = 0; i < e.count; i++) {
			assert(e.items[i][0] && e.items[i][0] != '/' && strcmp(e.items[i], ".") != 0);
			assert(!strstr(e.items[i], "..") && !strchr(e.items[i], ','));
		}
		excludes_done(&e);
	}
	return 0;
}
