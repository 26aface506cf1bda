/* Whatever limits a client wishes for: those that are taken are within the bounds that the keeper judges
 * again. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "isolation/instance.h"
#include "routes/limits_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	json_t *json = json_loadb((const char *)bytes, len, JSON_DECODE_ANY, NULL);
	char wrong[LIMITS_REQUEST_WRONG] = "";
	struct limits own, least, most;

	instance_bounds(&least, &most);
	if (json && limits_request(json, &own, wrong) == 0) assert(limits_are_within(&own, &least, &most));
	else if (json) assert(wrong[0] && strlen(wrong) < sizeof wrong);
	json_decref(json);
	return 0;
}
