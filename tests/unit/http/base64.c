#include "http/base64.h"

#include <openssl/evp.h>

#include "base/mem.h"
#include "unit.h"

#define LONGEST 400

/* Every length around the steps of a vector, and every byte in every position of one. */
TEST(it_says_what_openssl_says)
{
	unsigned char bytes[LONGEST];
	char ours[BASE64_LEN(LONGEST) + 1], theirs[BASE64_LEN(LONGEST) + 1];

	for (unsigned round = 0; round < 64; round++) {
		for (size_t i = 0; i < LONGEST; i++)
			bytes[i] = (unsigned char)(i * 37 + round * 11 + i / 7);
		for (size_t len = 0; len <= LONGEST; len++) {
			int expected = EVP_EncodeBlock((unsigned char *)theirs, bytes, (int)len);

			ASSERT_EQ(base64_encode(ours, bytes, len) - ours, expected);
			ASSERT_EQ((size_t)expected, BASE64_LEN(len));
			ASSERT_OK(memcmp(ours, theirs, (size_t)expected));
		}
	}
}

/* A vector reads more than it uses, but never behind the end. */
TEST(it_reads_nothing_behind_the_bytes)
{
	for (size_t len = 0; len < 100; len++) {
		auto_free unsigned char *bytes = mem_new(len + !len);
		auto_free char *to = mem_new(BASE64_LEN(len) + 1);

		(void)base64_encode(to, bytes, len); /* the sanitizer watches */
	}
}

TESTS(RUN(it_says_what_openssl_says), RUN(it_reads_nothing_behind_the_bytes))
