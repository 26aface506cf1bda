/*
 * Whatever a body is: what passes as a process or a terminal has words without NULs, a directory,
 * "NAME=value" pairs and a size.
 */
#include <assert.h>
#include <string.h>

#include "routes/start_request.h"
#include "routes/terminal_size.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void judge(struct start_request *r)
{
	assert(r->argc > 0 && r->cwd[0] == '/');
	for (uint32_t i = 0; i < r->argc; i++)
		assert(strlen(r->argv[i]) ==
		       json_string_length(json_array_get(json_object_get(r->json, "argv"), i)));
	for (uint32_t i = 0; i < r->env_count; i++)
		assert(strchr(r->env[i], '=') > r->env[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct start_request r;
	struct start_fault fault = {0};

	if (start_request_process((const char *)bytes, len, &r, &fault)) {
		judge(&r);
		assert(path_is_within(r.cwd, "/workspace"));
		start_request_done(&r);
	} else {
		assert(fault.status && fault.code && fault.message);
	}
	if (start_request_terminal((const char *)bytes, len, &r, &fault)) {
		judge(&r);
		assert(r.cols >= 1 && r.cols <= TERMINAL_SIDE_MAX && r.rows >= 1 &&
		       r.rows <= TERMINAL_SIDE_MAX);
		start_request_done(&r);
	}
	return 0;
}
