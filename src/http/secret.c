/* secret.c - comparing keys without telling how far they agree. */
#include "http/http.h"

#include <string.h>

#include <openssl/crypto.h>

bool http_equal_secret(const char *given, const char *secret)
{
	size_t len = strlen(secret);
	bool same_length = strlen(given) == len;
	/* Of another length: compares with itself, to take the same time, and says no. */
	int differs = CRYPTO_memcmp(same_length ? given : secret, secret, len);

	return same_length & (differs == 0);
}
