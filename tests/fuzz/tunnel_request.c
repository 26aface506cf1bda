/* The bytes as a port and as a body: a port that passes may be one, a name that passes is a DNS label. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "routes/tunnel_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char name[TUNNEL_NAME_MAX + 1];
	uint16_t port;

	if (tunnel_port_parse((const char *)bytes, len, &port)) assert(port >= 1024 && port != 3000);
	if (!tunnel_body_parse((const char *)bytes, len, name)) {
		size_t n = strlen(name);

		assert(n <= TUNNEL_NAME_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n);
		assert(n == 0 || (name[0] != '-' && name[n - 1] != '-'));
	}
	return 0;
}
