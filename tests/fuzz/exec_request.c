/*
 * Whatever a body is: what passes has words without NULs, a directory inside the workspace, and "NAME=value"
 * pairs.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "routes/exec_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct exec_request r;
	struct exec_fault fault = {0};

	if (!exec_request_parse((const char *)bytes, len, NULL, &r, &fault)) {
		assert((fault.status == 400 || fault.status == 403) && fault.message[0]);
		return 0;
	}
	assert(r.argc > 0 && path_is_within(r.cwd, "/workspace"));
	for (uint32_t i = 0; i < r.argc; i++)
		assert(r.argv[i]);
	for (uint32_t i = 0; i < r.env_count; i++)
		assert(strchr(r.env[i], '=') > r.env[i]);
	assert(r.timeout_ms == 0 || r.timeout_text[0]);
	exec_request_done(&r);
	return 0;
}
