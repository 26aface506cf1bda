#include "config/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "config/address.h"
#include "unit.h"

static char *no_env[] = {NULL};

static int load(struct config *c, struct err *e, char *const env[], char *const argv[])
{
	int argc = 0;

	while (argv[argc])
		argc++;
	config_init(c);
	return config_load(c, argc, argv, env, e);
}

#define FLAGS(...) ((char *[]){(char *)"serve", __VA_ARGS__, NULL})
#define ENV(...)   ((char *[]){__VA_ARGS__, NULL})

static char *file_with(const char *text)
{
	static char path[] = "/tmp/tombolo-unit-config-XXXXXX";
	int fd;

	(void)snprintf(path, sizeof path, "/tmp/tombolo-unit-config-XXXXXX");
	fd = mkstemp(path);
	ASSERT_TRUE(fd >= 0);
	ASSERT_OK(fd_write_all(fd, text, strlen(text)));
	fd_close(fd);
	return path;
}

TEST(the_defaults_are_the_documented_ones)
{
	struct config c;

	config_init(&c);
	ASSERT_STR(c.listen, "127.0.0.1:8787");
	ASSERT_STR(c.state_dir, "/var/lib/tombolo");
	ASSERT_EQ(c.file_limit, 33554432);
	ASSERT_EQ(c.keepalive_ms, 15000);
	ASSERT_EQ(c.max_sandboxes, 1000);
	ASSERT_FALSE(c.keep_sandboxes);
	ASSERT_OK(config_check(&c, NULL));
	config_done(&c);
}

TEST(flags_win_over_environment_over_file_over_defaults)
{
	char *path =
		file_with("# a comment\nmax-sandboxes = 1\nparked = 1\ninstance = lite\n\nprofile=legacy\n");
	struct err e = ERR_NONE;
	struct config c;

	ASSERT_OK(load(
		&c, &e,
		ENV((char *)"TOMBOLO_MAX_SANDBOXES=2", (char *)"TOMBOLO_PARKED=2", (char *)"TOMBOLO_USER="),
		FLAGS((char *)"--config", path, (char *)"--max-sandboxes=3")));
	ASSERT_EQ(c.max_sandboxes, 3);
	ASSERT_EQ(c.parked, 2);
	ASSERT_STR(c.instance, "lite");
	ASSERT_STR(c.profile, "legacy");
	ASSERT_STR(c.user, "sandbox");
	config_done(&c);
	(void)unlink(path);
}

TEST(the_contracts_environment_names_work_and_ours_win)
{
	struct config c;

	ASSERT_OK(
		load(&c, NULL, ENV((char *)"SANDBOX_API_KEY=k1", (char *)"WARM_POOL_TARGET=7"), FLAGS(NULL)));
	ASSERT_STR(c.api_key, "k1");
	ASSERT_EQ(c.warm_pool_target, 7);
	config_done(&c);
	ASSERT_OK(
		load(&c, NULL, ENV((char *)"SANDBOX_API_KEY=k1", (char *)"TOMBOLO_API_KEY=k2"), FLAGS(NULL)));
	ASSERT_STR(c.api_key, "k2");
	config_done(&c);
}

struct pool_numbers {
	char *target, *interval, *batch;
	unsigned want_target, want_batch;
	uint64_t want_interval;
};

TEST(numbers_of_the_contracts_pool_are_brought_into_range_or_ignored)
{
	static const struct pool_numbers cases[] = {
		{"WARM_POOL_TARGET=3", "WARM_POOL_REFRESH_INTERVAL=500", "WARM_POOL_SCALE_BATCH_SIZE=50", 3,
		 20, 500},
		{"WARM_POOL_TARGET=many", "WARM_POOL_REFRESH_INTERVAL=-1", "WARM_POOL_SCALE_BATCH_SIZE=0", 0,
		 1, 10000},
		{"WARM_POOL_TARGET=-2", "WARM_POOL_REFRESH_INTERVAL=x", "WARM_POOL_SCALE_BATCH_SIZE=NaN", 0,
		 5, 10000},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config c;

		ASSERT_OK(
			load(&c, NULL, ENV(cases[i].target, cases[i].interval, cases[i].batch), FLAGS(NULL)));
		ASSERT_EQ(c.warm_pool_target, cases[i].want_target);
		ASSERT_EQ(c.warm_pool_refresh_interval, cases[i].want_interval);
		ASSERT_EQ(c.warm_pool_scale_batch_size, cases[i].want_batch);
		config_done(&c);
	}
}

TEST(an_address_may_name_its_profile)
{
	struct address list[ADDRESSES_MAX];

	ASSERT_EQ(addresses_parse("127.0.0.1:1=next, [::1]:2,localhost:3=legacy", list, NULL), 3);
	ASSERT_STR(list[0].profile, "next");
	ASSERT_STR(list[1].profile, "");
	ASSERT_STR(list[2].profile, "legacy");
}

TEST(the_last_of_two_equal_flags_wins_and_a_bool_needs_no_value)
{
	struct config c;

	ASSERT_OK(load(&c, NULL, no_env,
		       FLAGS((char *)"--parked", (char *)"1", (char *)"--keep-sandboxes", (char *)"--parked",
			     (char *)"9")));
	ASSERT_EQ(c.parked, 9);
	ASSERT_TRUE(c.keep_sandboxes);
	config_done(&c);
}

struct refusal {
	const char *flag, *says;
};

static const struct refusal refusals[] = {
	{"--max-sandboxes=0", "within 1-20000"},
	{"--max-sandboxes=-1", "within 1-20000"},
	{"--max-sandboxes=12x", "within 1-20000"},
	{"--max-sandboxes=99999999999999999999", "within 1-20000"},
	{"--file-limit=1TB", "a size such as"},
	{"--file-limit=99999999999GiB", "a size such as"},
	{"--keepalive-ms=soon", "a time such as"},
	{"--keep-sandboxes=perhaps", "yes or no"},
	{"--user=admin", "one of sandbox|root"},
	{"--profile=", "one of union|"},
	{"--profile=union|legacy", "one of union|"},
	{"--no-such", "no option '--no-such'"},
	{"--state_dir=/x", "no option"},
	{"--state-dir", "needs a value"},
	{"extra", "what is 'extra'"},
	{"--listen=8787", "has no port"},
	{"--listen=127.0.0.1:", "no port"},
	{"--listen=127.0.0.1:65536", "no port"},
	{"--listen=::1:80", "no address"},
	{"--listen=[::1:80", "no address"},
	{"--listen=example.com:80", "no address"},
	{"--listen=127.0.0.1:1,", "has no port"},
	{"--listen=127.0.0.1:1=", "no profile"},
	{"--listen=127.0.0.1:1=beta", "no profile"},
	{"--listen=0.0.0.0:8787", "set a key"},
	{"--listen=127.0.0.1:1,[::]:1", "set a key"},
	{"--api-key-file=/nonexistent/key", "read the key file"},
	{"--config=/nonexistent/conf", "read the config file"},
};

TEST(what_is_wrong_is_refused_with_what_is_allowed)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct err e = ERR_NONE;
		struct config c;

		ASSERT_EQ(load(&c, &e, no_env, FLAGS((char *)refusals[i].flag)), -EINVAL);
		if (!strstr(e.text, refusals[i].says))
			fail_msg("'%s' does not say '%s'", e.text, refusals[i].says);
		config_done(&c);
	}
}

TEST(a_bad_line_is_named_by_file_and_number)
{
	static const struct refusal lines[] = {
		{"parked = 1\n\nno_such = 2\n", ":3: there is no option 'no_such'"},
		{"parked = 1\nparked = many\n", ":2: parked cannot be 'many'"},
		{"[server]\nparked = 1\n", ":2: there are no [sections]"},
		{"parked = 1\nwhat is this\n", ":2: not a line of the form"},
		{"config = other\n", ":1: a config file cannot name another"},
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		char *path = file_with(lines[i].flag);
		struct err e = ERR_NONE;
		struct config c;

		ASSERT_EQ(load(&c, &e, no_env, FLAGS((char *)"--config", path)), -EINVAL);
		if (!strstr(e.text, lines[i].says)) fail_msg("'%s' does not say '%s'", e.text, lines[i].says);
		config_done(&c);
		(void)unlink(path);
	}
}

TEST(a_long_line_is_whole_or_refused_and_a_semicolon_is_part_of_a_value)
{
	char text[6000], key[1001];
	struct err e = ERR_NONE;
	struct config c;
	char *path;

	memset(key, 'k', sizeof key - 1);
	key[1000] = '\0';
	key[500] = ' ';
	key[501] = ';';
	(void)snprintf(text, sizeof text, "api-key = %s\n", key);
	path = file_with(text);
	ASSERT_OK(load(&c, &e, no_env, FLAGS((char *)"--config", path)));
	ASSERT_STR(c.api_key, key);
	config_done(&c);
	(void)unlink(path);

	memset(text, 'k', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	memcpy(text, "api-key = ", 10);
	path = file_with(text);
	ASSERT_EQ(load(&c, &e, no_env, FLAGS((char *)"--config", path)), -EINVAL);
	ASSERT_TRUE(strstr(e.text, ":1: the line is too long"));
	config_done(&c);
	(void)unlink(path);
}

TEST(the_key_comes_from_its_file_and_opens_other_addresses)
{
	char *path = file_with("secret key\nsecond line\n");
	struct err e = ERR_NONE;
	struct config c;

	ASSERT_OK(
		load(&c, &e, no_env,
		     FLAGS((char *)"--api-key-file", path, (char *)"--listen", (char *)"0.0.0.0:0,[::1]:0")));
	ASSERT_STR(c.api_key, "secret key");
	config_done(&c);
	(void)unlink(path);
}

TEST(settings_survive_the_way_to_another_program_and_cannot_be_changed_there)
{
	struct config c, got;
	int fd;

	ASSERT_OK(load(&c, NULL, ENV((char *)"SANDBOX_API_KEY=a=b\nc"),
		       FLAGS((char *)"--keep-sandboxes", (char *)"--file-limit", (char *)"2 GiB",
			     (char *)"--listen=[::1]:0")));
	ASSERT_OK(config_write(&c, &fd, NULL));
	ASSERT_TRUE(pwrite(fd, "x", 1, 0) < 0);
	config_init(&got);
	ASSERT_OK(config_read_fd(fd, &got, NULL));
	ASSERT_STR(got.api_key, "a=b\nc");
	ASSERT_STR(got.listen, "[::1]:0");
	ASSERT_EQ(got.file_limit, 2ull << 30);
	ASSERT_TRUE(got.keep_sandboxes);
	config_done(&got);
	config_done(&c);
	fd_close(fd);
}

TEST(addresses_come_back_as_text)
{
	static const char *const pairs[][2] = {{"127.0.0.1:1", "127.0.0.1:1"},
					       {"localhost:65535", "127.0.0.1:65535"},
					       {"[::1]:0", "[::1]:0"}};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		char text[ADDRESS_TEXT];
		struct address a;

		ASSERT_OK(address_parse(pairs[i][0], &a, NULL));
		address_text(&a, text);
		ASSERT_STR(text, pairs[i][1]);
		ASSERT_TRUE(address_is_loopback(&a));
	}
}

TESTS(RUN(the_defaults_are_the_documented_ones), RUN(flags_win_over_environment_over_file_over_defaults),
      RUN(the_contracts_environment_names_work_and_ours_win),
      RUN(numbers_of_the_contracts_pool_are_brought_into_range_or_ignored),
      RUN(an_address_may_name_its_profile), RUN(the_last_of_two_equal_flags_wins_and_a_bool_needs_no_value),
      RUN(what_is_wrong_is_refused_with_what_is_allowed), RUN(a_bad_line_is_named_by_file_and_number),
      RUN(a_long_line_is_whole_or_refused_and_a_semicolon_is_part_of_a_value),
      RUN(the_key_comes_from_its_file_and_opens_other_addresses),
      RUN(settings_survive_the_way_to_another_program_and_cannot_be_changed_there),
      RUN(addresses_come_back_as_text))
