/* Whatever a body is: a mount that passes says which bucket and where; an unmount that passes names a place
 * below the root. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "routes/bucket_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_mount(const char *body, size_t len, enum profile profile)
{
	struct mount_request r;

	if (!mount_request_parse(body, len, profile, &r)) {
		assert(r.mount_path[0] == '/' && json_is_object(r.options));
		assert((r.endpoint && r.bucket && r.bucket[0]) || (r.binding && r.binding[0]));
	}
	mount_request_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *body = (const char *)bytes;
	char path[PATH_LIMIT];

	try_mount(body, len, PROFILE_UNION);
	try_mount(body, len, PROFILE_LEGACY);
	if (!unmount_request_parse(body, len, path)) {
		assert(path[0] == '/' && path[1] != '\0');
		assert(!strstr(path, "//") && !strstr(path, "/../"));
	}
	return 0;
}
