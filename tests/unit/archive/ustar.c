#include "archive/ustar.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static struct ustar_member file_named(const char *name)
{
	return (struct ustar_member){
		.type = USTAR_FILE, .name = name, .name_len = strlen(name), .mode = 0644};
}

static unsigned long octal(const char *field)
{
	return strtoul(field, NULL, 8);
}

static void assert_checksum(const char *block)
{
	unsigned long sum = 0;

	for (size_t i = 0; i < USTAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
	ASSERT_EQ(octal(block + 148), sum);
}

TEST(a_short_name_needs_one_block)
{
	struct ustar_member m = file_named("./a");
	char out[USTAR_BLOCK];

	m.mode = 04755;
	m.uid = m.gid = 1000;
	m.size = USTAR_SIZE_MAX;
	m.mtime = 1234567890;
	ASSERT_EQ(ustar_header_size(&m), USTAR_BLOCK);
	ustar_write(&m, out);
	ASSERT_STR(out, "./a");
	ASSERT_STR(out + 100, "0004755");
	ASSERT_STR(out + 108, "0001750");
	ASSERT_STR(out + 124, "77777777777");
	ASSERT_EQ(octal(out + 136), 1234567890);
	ASSERT_EQ(out[156], '0');
	ASSERT_MEM(out + 257, "ustar\00000", 8);
	assert_checksum(out);
}

TEST(what_a_field_cannot_hold_becomes_the_nearest_value)
{
	struct ustar_member m = file_named("./a");
	char out[USTAR_BLOCK];

	m.uid = UINT64_MAX;
	m.gid = 07777777;
	m.mtime = -5;
	ustar_write(&m, out);
	ASSERT_EQ(octal(out + 108), 65534);
	ASSERT_EQ(octal(out + 116), 07777777);
	ASSERT_EQ(octal(out + 136), 0);
	m.mtime = INT64_MAX;
	ustar_write(&m, out);
	ASSERT_STR(out + 136, "77777777777");
}

TEST(a_name_of_101_bytes_is_cut_at_a_slash)
{
	char name[102], out[USTAR_BLOCK];

	memset(name, 'x', 101);
	name[101] = '\0';
	name[1] = '/';
	struct ustar_member m = file_named(name);
	ASSERT_EQ(ustar_header_size(&m), USTAR_BLOCK);
	ustar_write(&m, out);
	ASSERT_STR(out + 345, "x");
	ASSERT_MEM(out, name + 2, 99);
	assert_checksum(out);
}

TEST(a_name_that_cannot_be_cut_goes_into_a_pax_header_of_its_own)
{
	char name[300], out[4 * USTAR_BLOCK], record[400];

	memset(name, 'y', 299);
	name[299] = '\0';
	struct ustar_member m = file_named(name);
	int len = snprintf(record, sizeof record, "309 path=%s\n", name);
	ASSERT_EQ(len, 309);
	ASSERT_EQ(ustar_header_size(&m), 3 * USTAR_BLOCK);
	ustar_write(&m, out);
	ASSERT_EQ(out[156], 'x');
	ASSERT_EQ(octal(out + 124), 309);
	ASSERT_MEM(out + USTAR_BLOCK, record, 309);
	ASSERT_EQ(out[USTAR_BLOCK + 309], 0);
	ASSERT_EQ(out[2 * USTAR_BLOCK + 156], '0');
	assert_checksum(out);
	assert_checksum(out + 2 * USTAR_BLOCK);
}

/* 100 is where the length of a record gains a digit by counting itself: no length may be off by one. */
TEST(a_pax_record_counts_its_own_digits)
{
	char target[1200], out[6 * USTAR_BLOCK];

	memset(target, 't', sizeof target);
	for (size_t len = 101; len < sizeof target; len++) {
		struct ustar_member m = file_named("./l");
		char *end;

		m.type = USTAR_SYMLINK;
		m.target = target;
		m.target_len = len;
		assert_true(ustar_header_size(&m) <= sizeof out);
		ustar_write(&m, out);
		ASSERT_EQ(strtoul(out + USTAR_BLOCK, &end, 10), octal(out + 124));
		ASSERT_MEM(end, " linkpath=", 10);
		ASSERT_EQ(end[10 + len], '\n');
		ASSERT_EQ((size_t)(end + 11 + len - out - USTAR_BLOCK), octal(out + 124));
	}
}

TEST(padding_fills_the_block)
{
	ASSERT_EQ(ustar_padding(0), 0);
	ASSERT_EQ(ustar_padding(1), 511);
	ASSERT_EQ(ustar_padding(512), 0);
	ASSERT_EQ(ustar_padding(USTAR_SIZE_MAX), 1);
}

TESTS(RUN(a_short_name_needs_one_block), RUN(what_a_field_cannot_hold_becomes_the_nearest_value),
      RUN(a_name_of_101_bytes_is_cut_at_a_slash),
      RUN(a_name_that_cannot_be_cut_goes_into_a_pax_header_of_its_own),
      RUN(a_pax_record_counts_its_own_digits), RUN(padding_fills_the_block))
