/* Whatever a body is: what passes has an id that the header may carry, an absolute directory, and
 * "NAME=value" pairs. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "routes/session_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct session_request r;
	const char *fault = session_request_parse((const char *)bytes, len, &r);

	if (fault) {
		assert(fault[0] && !r.env);
		return 0;
	}
	assert(!r.id[0] || id_is_name(r.id, strlen(r.id)));
	assert(r.cwd[0] == '/');
	for (uint32_t i = 0; i < r.env_count; i++)
		assert(strchr(r.env[i], '=') > r.env[i]);
	session_request_done(&r);
	return 0;
}
