#include "routes/limits_request.h"

#include "unit.h"

static struct limits got;
static char wrong[LIMITS_REQUEST_WRONG];

static int judge(const char *text)
{
	json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
	int r;

	assert_non_null(json);
	wrong[0] = '\0';
	r = limits_request(json, &got, wrong);
	json_decref(json);
	return r;
}

TEST(each_limit_comes_in_its_own_unit)
{
	ASSERT_OK(judge("{\"memory_mb\": 256, \"pids\": 64, \"cpu\": 0.25, \"disk_mb\": 2048}"));
	ASSERT_EQ(got.memory_bytes, 256u << 20);
	ASSERT_EQ(got.pids, 64);
	ASSERT_EQ(got.cpu_milli, 250);
	ASSERT_EQ(got.disk_bytes, UINT64_C(2048) << 20);
}

TEST(what_is_not_said_is_left_to_the_instance_type)
{
	ASSERT_OK(judge("{\"pids\": 64, \"cpu\": null}"));
	ASSERT_EQ(got.memory_bytes, 0);
	ASSERT_EQ(got.cpu_milli, 0);
	ASSERT_OK(limits_request(NULL, &got, wrong));
	ASSERT_EQ(got.pids, 0);
	ASSERT_OK(judge("null"));
}

TEST(what_cannot_be_is_refused_with_its_bounds)
{
	static const char *const texts[] = {
		"[]",
		"7",
		"\"x\"",
		"{\"memory\": 1}",
		"{\"memory_mb\": \"256\"}",
		"{\"memory_mb\": 256.5}",
		"{\"memory_mb\": 15}",
		"{\"memory_mb\": -256}",
		"{\"memory_mb\": 9007199254740993}",
		"{\"memory_mb\": true}",
		"{\"pids\": 7}",
		"{\"pids\": 1e3}",
		"{\"cpu\": 0}",
		"{\"cpu\": -1}",
		"{\"cpu\": 1e300}",
		"{\"disk_mb\": 63}",
	};

	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		ASSERT_EQ(judge(texts[i]), -EINVAL);
		ASSERT_TRUE(strncmp(wrong, "limits", 6) == 0);
	}
	ASSERT_EQ(judge("{\"pids\": 7}"), -EINVAL);
	ASSERT_STR(wrong, "limits.pids must be a whole number from 8 to 8192");
}

TESTS(RUN(each_limit_comes_in_its_own_unit), RUN(what_is_not_said_is_left_to_the_instance_type),
      RUN(what_cannot_be_is_refused_with_its_bounds))
