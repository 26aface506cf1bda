/*
 * "METHOD TARGET": whatever they are, what the router hands on is an id of the right form and a place in the
 * path.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "http/target.h"
#include "routes/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	auto_free char *text = mem_strndup((const char *)bytes, len);
	char *target_text = strchr(text, ' ');
	enum profile profile = PROFILE_UNION;
	struct router_match match;
	struct target target;
	const char *path;

	if (!target_text) return 0;
	*target_text++ = '\0';
	auto_free char *room = mem_new(TARGET_ROOM(strlen(target_text)));
	if (target_parse(target_text, strlen(target_text), room, &target) < 0) return 0;
	path = router_strip_profile(target.path, &profile);
	switch (router_match(text, path, profile, &match)) {
	case ROUTER_FOUND: assert(match.route); break;
	case ROUTER_BAD_ID: assert(!match.route && !match.id[0]); return 0;
	case ROUTER_UNKNOWN: assert(!match.route); break;
	}
	assert(!match.id[0] || id_is_sandbox(match.id, strlen(match.id)));
	if (match.route && match.rest) assert(match.rest >= path && match.rest <= path + strlen(path));
	assert(!router_may(CREDENTIALS_BEARER, "secret", target.query, target.query) ||
	       strcasestr(target.query, "bearer secret"));
	return 0;
}
