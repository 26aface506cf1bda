/*
 * base64.c - OpenSSL's encoder makes 1.6 GB/s here, a third of the time that the front spends on output. With
 * AVX2 it is 24 bytes in a dozen instructions, after Muła and Lemire, "Faster Base64 Encoding and Decoding
 * using AVX2 Instructions" (2018).
 */
#include "http/base64.h"

#include <openssl/evp.h>

#ifdef __x86_64__

#include <immintrin.h>

#define STEP      24 /* bytes that become 32 characters */
#define STEP_READ 28 /* bytes that are read for it */

/* Each lane holds 12 bytes, by threes: spreads them to four times 6 bits in a byte each. */
__attribute__((target("avx2"))) static __m256i split(__m256i in)
{
	const __m256i order =
		_mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10, /* b a c b: two pairs */
				 1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
	__m256i pairs = _mm256_shuffle_epi8(in, order);
	/* A multiplication of 16 bits is a shift of its own for each half of a pair. */
	__m256i first = _mm256_mulhi_epu16(_mm256_and_si256(pairs, _mm256_set1_epi32(0x0FC0FC00)),
					   _mm256_set1_epi32(0x04000040));
	__m256i second = _mm256_mullo_epi16(_mm256_and_si256(pairs, _mm256_set1_epi32(0x003F03F0)),
					    _mm256_set1_epi32(0x01000010));

	return _mm256_or_si256(first, second);
}

/* The alphabet is five runs of characters: adds what leads from the numbers of a run to its characters. */
__attribute__((target("avx2"))) static __m256i letters(__m256i numbers)
{
	const char d = '0' - 52;
	const __m128i lead =
		_mm_setr_epi8('a' - 26, d, d, d, d, d, d, d, d, d, d, '+' - 62, '/' - 63, 'A', 0, 0);
	const __m256i leads = _mm256_broadcastsi128_si256(lead);
	/* 0 for a to z, 1 to 10 for the digits, 11 and 12; and 13 for A to Z. */
	__m256i run = _mm256_subs_epu8(numbers, _mm256_set1_epi8(51));
	__m256i is_upper = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), numbers);

	run = _mm256_or_si256(run, _mm256_and_si256(is_upper, _mm256_set1_epi8(13)));
	return _mm256_add_epi8(_mm256_shuffle_epi8(leads, run), numbers);
}

/* How many bytes it encoded: all but a short rest. */
__attribute__((target("avx2"))) static size_t encode_most(char *to, const unsigned char *bytes, size_t len)
{
	size_t done = 0;

	for (; len - done >= STEP_READ; done += STEP, to += 32) {
		__m128i low = _mm_loadu_si128((const __m128i *)(bytes + done));
		__m128i high = _mm_loadu_si128((const __m128i *)(bytes + done + STEP / 2));

		_mm256_storeu_si256((__m256i *)to, letters(split(_mm256_set_m128i(high, low))));
	}
	return done;
}

char *base64_encode(char *to, const void *bytes, size_t len)
{
	size_t done = __builtin_cpu_supports("avx2") ? encode_most(to, bytes, len) : 0;

	to += BASE64_LEN(done);
	return to +
	       EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)bytes + done, (int)(len - done));
}

#else

char *base64_encode(char *to, const void *bytes, size_t len)
{
	return to + EVP_EncodeBlock((unsigned char *)to, bytes, (int)len);
}

#endif
