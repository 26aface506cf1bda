#include "keeper/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

static struct record example(void)
{
	struct record rec = {
		.instance = "standard-3",
		.run = "0b6c3f0e-9a2d-4c57-8d5e-1f2a3b4c5d6e",
		.boot = "11111111-2222-4333-8444-555555555555",
		.base_id = 0x10020000,
		.pid = 4321,
		.pid_start = 987654321,
		.created_ms = 1700000000000,
		.own = {.memory_bytes = 1u << 28,
			.pids = 64,
			.cpu_milli = 500,
			.disk_bytes = UINT64_C(1) << 40},
	};

	memset(rec.id, 'z', SANDBOX_ID_MAX);
	for (unsigned i = 0; i < RECORD_COOKIE; i++)
		rec.cookie[i] = (uint8_t)(i * 37);
	return rec;
}

TEST(a_record_comes_back_as_it_was)
{
	struct record rec = example(), got;
	char text[RECORD_MAX];
	size_t len = record_format(&rec, text);

	ASSERT_TRUE(len < RECORD_MAX);
	ASSERT_OK(record_parse(text, len, &got, NULL));
	ASSERT_STR(got.id, rec.id);
	ASSERT_STR(got.run, rec.run);
	ASSERT_STR(got.boot, rec.boot);
	ASSERT_STR(got.instance, rec.instance);
	ASSERT_MEM(got.cookie, rec.cookie, RECORD_COOKIE);
	ASSERT_EQ(got.base_id, rec.base_id);
	ASSERT_EQ(got.pid, rec.pid);
	ASSERT_EQ(got.pid_start, rec.pid_start);
	ASSERT_EQ(got.created_ms, rec.created_ms);
	ASSERT_EQ(got.own.memory_bytes, rec.own.memory_bytes);
	ASSERT_EQ(got.own.pids, rec.own.pids);
	ASSERT_EQ(got.own.cpu_milli, rec.own.cpu_milli);
	ASSERT_EQ(got.own.disk_bytes, rec.own.disk_bytes);
}

TEST(a_record_of_nobodys_sandbox_has_no_id)
{
	struct record rec = example(), got;
	char text[RECORD_MAX];

	rec.id[0] = '\0';
	ASSERT_OK(record_parse(text, record_format(&rec, text), &got, NULL));
	ASSERT_STR(got.id, "");
}

TEST(a_record_that_is_cut_anywhere_is_none)
{
	struct record rec = example(), got;
	char text[RECORD_MAX];
	size_t len = record_format(&rec, text);

	for (size_t cut = 0; cut < len; cut++)
		ASSERT_EQ(record_parse(text, cut, &got, NULL), -EINVAL);
}

struct damage {
	const char *from, *to;
};

static const struct damage damages[] = {
	{"tombolo-record ", "tombolo-record 9"},
	{"id zz", "id Zz"},
	{"id zz", "id ../zz"},
	{"run 0b6c", "run 0B6c"},
	{"run 0b6c", "run 0b6"},
	{"instance standard-3", "instance "},
	{"instance standard-3", "instance a/b"},
	{"instance standard-3", "instance abcdefghijklmnopqrstuvwxyz0123456789"},
	{"base_id 268566528", "base_id 0"},
	{"base_id 268566528", "base_id 268566529"},
	{"base_id 268566528", "base_id 4294967296"},
	{"base_id 268566528", "base_id -1"},
	{"base_id 268566528", "base_id  65536"},
	{"\npid 4321", "\npid 1"},
	{"\npid 4321", "\npid -5"},
	{"\npid 4321", "\npid 4321x"},
	{"\npid 4321", "\npid 99999999999999999999"},
	{"pid_start 987654321", "pid_start 0"},
	{"pid_start 987654321", "pid_start "},
	{"cookie 00", "cookie 0"},
	{"cookie 00", "cookie 0g"},
	{"cookie 00", "cookie 0000"},
	{"created_ms 1700000000000\n", "created_ms 1700000000000"},
	{"pids 64\n", "pids 4294967296\n"},
	{"disk_bytes 1099511627776\n", "disk_bytes 1099511627776"},
	{"disk_bytes 1099511627776\n", "disk_bytes 1099511627776\nmore\n"},
	{"base_id 268566528\npid", "pid"},
};

TEST(a_record_with_anything_wrong_in_it_is_none)
{
	struct record rec = example(), got;
	char text[RECORD_MAX], damaged[RECORD_MAX * 2];

	(void)record_format(&rec, text);
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		char *at = strstr(text, damages[i].from);

		ASSERT_TRUE(at != NULL);
		(void)snprintf(damaged, sizeof damaged, "%.*s%s%s", (int)(at - text), text, damages[i].to,
			       at + strlen(damages[i].from));
		if (record_parse(damaged, strlen(damaged), &got, NULL) != -EINVAL)
			fail_msg("taken for good: '%s' for '%s'", damages[i].to, damages[i].from);
	}
}

TEST(a_nul_byte_or_too_much_of_it_is_refused)
{
	struct record rec = example(), got;
	char text[RECORD_MAX + 2] = "";
	size_t len = record_format(&rec, text);

	text[20] = '\0';
	ASSERT_EQ(record_parse(text, len, &got, NULL), -EINVAL);
	memset(text, 'x', sizeof text);
	ASSERT_EQ(record_parse(text, sizeof text, &got, NULL), -EINVAL);
}

TEST(a_record_is_replaced_whole_and_leaves_no_temporary)
{
	char dir[] = "/tmp/tombolo-unit-record-XXXXXX";
	struct record rec = example(), got;

	ASSERT_TRUE(mkdtemp(dir) != NULL);
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_EQ(record_read(fd, &got, NULL), -ENOENT);
	ASSERT_OK(record_write(fd, &rec, NULL));
	rec.pid = 77;
	ASSERT_OK(record_write(fd, &rec, NULL));
	ASSERT_OK(record_sync(fd));
	ASSERT_OK(record_read(fd, &got, NULL));
	ASSERT_EQ(got.pid, 77);
	ASSERT_TRUE(faccessat(fd, "record.new", F_OK, 0) < 0);
	ASSERT_OK(unlinkat(fd, "record", 0));
	ASSERT_OK(rmdir(dir));
}

TESTS(RUN(a_record_comes_back_as_it_was), RUN(a_record_of_nobodys_sandbox_has_no_id),
      RUN(a_record_that_is_cut_anywhere_is_none), RUN(a_record_with_anything_wrong_in_it_is_none),
      RUN(a_nul_byte_or_too_much_of_it_is_refused), RUN(a_record_is_replaced_whole_and_leaves_no_temporary))
