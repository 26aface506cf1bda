/* unit.h - cmocka with our names: TEST(sentence) { ... }, one binary a file, tests listed at its end by
 * TESTS(...). */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TEST(name) static void name(void **state_ __attribute__((unused)))

#define ASSERT_OK(call)     assert_int_equal((call), 0)
#define ASSERT_EQ(a, b)     assert_int_equal((a), (b))
#define ASSERT_TRUE(x)      assert_true(x)
#define ASSERT_FALSE(x)     assert_false(x)
#define ASSERT_STR(a, b)    assert_string_equal((a), (b))
#define ASSERT_MEM(a, b, n) assert_memory_equal((a), (b), (n))

/* TESTS(RUN(one_test), RUN(another)): the main() of the binary. */
#define RUN(name) cmocka_unit_test(name)
#define TESTS(...) \
	int main(void) \
	{ \
		const struct CMUnitTest tests[] = {__VA_ARGS__}; \
		return cmocka_run_group_tests(tests, NULL, NULL); \
	}
