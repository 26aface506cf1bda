#include "agent/command.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/environment.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"
#include "wire/message.h"

static uint8_t room[1 << 20];

/* Lists as the agent gets them: parsed from a packet. */
struct request {
	struct msg_open_exec m;
	struct environment env;
};

static void request_of(struct request *q, const char *const *argv, size_t argc, const char *const *env,
		       size_t envc)
{
	struct msg_open_exec sent = {.cwd = wire_text_of("/tmp"),
				     .argv = {.items = argv, .count = (uint32_t)argc},
				     .env = {.items = env, .count = (uint32_t)envc}};
	struct packet p = {.bytes = room, .room = sizeof room};
	struct frame_reader reader;
	struct frame f;

	ASSERT_OK(msg_open_exec_add(&p, 1, &sent));
	reader = frame_reader_of(p.bytes, p.len);
	ASSERT_EQ(frame_reader_next(&reader, &f), 1);
	ASSERT_OK(msg_open_exec_parse(&f, &q->m));
	ASSERT_OK(environment_build(1000, "/tmp", &q->m.env, &q->env, NULL));
}

static size_t count_of(const char *const *argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	return n;
}

struct outcome {
	int status;
	size_t len;
	char text[8192]; /* stdout and stderr */
};

static void run(const char *path, char *const *argv, char *const *env, struct outcome *ret)
{
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	ASSERT_OK(pipe2(ends, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		(void)close(0);
		(void)open("/dev/null", O_RDONLY);
		if (dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0 || chdir("/tmp") < 0) _exit(99);
		(void)close_range(COMMAND_SCRIPT_FD + 1, ~0u, 0);
		execve(path, argv, env);
		_exit(98);
	}
	(void)close(ends[1]);
	ret->len = 0;
	while ((n = read(ends[0], ret->text + ret->len, sizeof ret->text - 1 - ret->len)) > 0)
		ret->len += (size_t)n;
	ret->text[ret->len] = '\0';
	(void)close(ends[0]);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ret->status = status;
}

static void run_by_bash(const struct command *c, const struct request *q, struct outcome *ret)
{
	run("/bin/bash", (char *const *)c->bash_argv, q->env.vars, ret);
}

/* As spawn.c does it. */
static bool run_directly(const struct command *c, const struct request *q, struct outcome *ret)
{
	char **env = q->env.vars;
	size_t n = q->env.count;
	bool found = false;

	for (char *const *at = c->candidates; *at && !found; at++) {
		if (access(*at + 2, X_OK) < 0) continue;
		env[n] = (char *)"SHLVL=0";
		env[n + 1] = *at;
		run(*at + 2, c->argv, env, ret);
		found = true;
	}
	env[n] = env[n + 1] = NULL;
	return found;
}

TEST(words_come_out_of_bash_as_they_went_in)
{
	static const char *const argv[] = {"printf",     "%s|",
					   "",           "a b",
					   "$HOME",      "*",
					   "'",          "\\",
					   "\\n",        "a'b\\'c",
					   "line\nfeed", "tab\there",
					   "cr\rx",      "\xc3\xa9t\xc3\xa9 \xe2\x82\xac",
					   "\xff\xfe",   "`id`",
					   "$(id)",      "!",
					   "!!",         "~",
					   "{a,b}",      "#",
					   "-n",         "--",
					   "a=b",        "@%+=:,./-",
					   "\"",         ";",
					   "&&",         "|",
					   ">",          "\x01\x02\x7f",
					   "trailing\\", "$'x'",
					   "?",          "[a]",
					   NULL};
	struct request q;
	struct command c;
	struct outcome got;
	char expected[1024] = "";

	request_of(&q, argv, count_of(argv), NULL, 0);
	ASSERT_OK(command_plan(&q.m.argv, false, &q.env, &q.m.env, &c, NULL));
	run_by_bash(&c, &q, &got);
	for (size_t i = 2; argv[i]; i++)
		strcat(strcat(expected, argv[i]), "|");
	ASSERT_STR(got.text, expected);
	command_done(&c);
	environment_done(&q.env);
}

TEST(quoting_is_that_of_the_contract)
{
	static const struct {
		const char *word, *quoted;
	} cases[] = {{"", "$''"},
		     {"abc", "abc"},
		     {"a_b", "$'a_b'"},
		     {"a b", "$'a b'"},
		     {"it's", "$'it\\'s'"},
		     {"\\", "$'\\\\'"},
		     {"a\n\r\t", "$'a\\n\\r\\t'"},
		     {"FOO=1", "FOO=1"},
		     {"\xc3\xa9", "$'\xc3\xa9'"},
		     {"a@%+=:,./-Z9", "a@%+=:,./-Z9"},
		     {"$x", "$'$x'"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf struct buf line = buf_with_cap(100);

		ASSERT_OK(command_quote(&line, cases[i].word, strlen(cases[i].word)));
		ASSERT_STR(buf_text(&line), cases[i].quoted);
	}
}

TEST(what_bash_would_not_look_up_is_left_to_bash)
{
	static const char *const for_bash[] = {"",     "exit", "cd", "true", "if",      "time",
					       "echo", "[",    "!",  "{",    "FOO=1",   "%1",
					       "a b",  "$x",   "*",  "~/x",  "\xc3\xa9"};
	static const char *const programs[] = {"ls",      "nosuchcmd",  "/bin/ls", "./x",
					       "my_tool", "python3.11", "g++",     "x-y"};

	for (size_t i = 0; i < ARRAY_LEN(for_bash); i++)
		ASSERT_FALSE(command_is_program(for_bash[i]));
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		ASSERT_TRUE(command_is_program(programs[i]));
}

/* Every argv of the contract, and then some: where we run it without bash, nobody can tell. */
TEST(without_bash_the_outcome_is_the_same)
{
	static const char *const table[][5] = {
		{"env"},
		{"/usr/bin/env"},
		{"printenv", "_"},
		{"printenv", "SHLVL"},
		{"sh", "-c", "echo $0 $SHLVL $PWD"},
		{"ls", "/nonexistent"},
		{"cat", "/proc/self/cmdline"},
		{"readlink", "/proc/self/fd/0"},
		{"sh", "-c", "exit 42"},
		{"sh", "-c", "kill -9 $$"},
		{"sh", "-c", "kill -PIPE $$"},
		{"head", "-c", "a b"},
		{"grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"},
		{"awk", "BEGIN { print \"'\\\\\" }"},
		{"expr", "1", "*", "2"},
		{"python3", "-c", "import os;print(sorted(os.environ.items()))"}};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		static const char *const env[] = {"FOO=a b", "EMPTY=", "odd.name=1", "NL=a\nb"};
		struct outcome with, without;
		struct request q;
		struct command c;

		request_of(&q, table[i], MIN(count_of(table[i]), (size_t)5), env, ARRAY_LEN(env));
		ASSERT_OK(command_plan(&q.m.argv, false, &q.env, &q.m.env, &c, NULL));
		ASSERT_TRUE(c.candidates[0] != NULL);
		run_by_bash(&c, &q, &with);
		if (run_directly(&c, &q, &without)) {
			if (strcmp(table[i][0], "env") != 0 && strcmp(table[i][0], "/usr/bin/env") != 0) {
				ASSERT_STR(without.text, with.text);
			}
			ASSERT_EQ(without.len, with.len); /* of env: the same variables, in another order */
			ASSERT_EQ(without.status, with.status);
		}
		command_done(&c);
		environment_done(&q.env);
	}
}

TEST(bash_gives_builtins_and_failures_their_status)
{
	static const struct {
		const char *argv[4];
		int code;
	} table[] = {{{"exit", "42"}, 42},
		     {{"true"}, 0},
		     {{"false"}, 1},
		     {{"cd", "/"}, 0},
		     {{"FOO=1", "env"}, 0},
		     {{"nosuchcmd"}, 127},
		     {{"/etc/passwd"}, 126},
		     {{"/etc"}, 126},
		     {{"if"}, 2},
		     {{""}, 127},
		     {{"/nonexistent/x"}, 127},
		     {{"a b"}, 127}};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct outcome got;
		struct request q;
		struct command c;

		request_of(&q, table[i].argv, MIN(count_of(table[i].argv), (size_t)4), NULL, 0);
		ASSERT_OK(command_plan(&q.m.argv, false, &q.env, &q.m.env, &c, NULL));
		run_by_bash(&c, &q, &got);
		ASSERT_EQ(WEXITSTATUS(got.status), table[i].code);
		command_done(&c);
		environment_done(&q.env);
	}
}

static size_t candidates_with(const char *var, const char *name)
{
	struct request q;
	struct command c;
	size_t n;

	request_of(&q, &name, 1, &var, 1);
	ASSERT_OK(command_plan(&q.m.argv, false, &q.env, &q.m.env, &c, NULL));
	n = count_of((const char *const *)c.candidates);
	command_done(&c);
	environment_done(&q.env);
	return n;
}

TEST(variables_that_bash_minds_bring_bash)
{
	static const char *const vars[] = {"BASH_ENV=/x", "BASH_FUNC_ls%%=() { :; }",
					   "SHELLOPTS=x", "POSIXLY_CORRECT=1",
					   "SHLVL=3",     "PWD=/x",
					   "_=x",         "LC_ALL=xx",
					   "LANG=xx",     "PATH=",
					   "PATH=:/bin",  "PATH=/bin:",
					   "PATH=bin"};

	for (size_t i = 0; i < ARRAY_LEN(vars); i++)
		ASSERT_EQ(candidates_with(vars[i], "ls"), 0);
	ASSERT_EQ(candidates_with("PATH=/a:/b/", "ls"), 2);
	ASSERT_EQ(candidates_with("FOO=1", "ls"), 6);
	ASSERT_EQ(candidates_with("FOO=1", "/bin/ls"), 1);
}

TEST(a_line_too_long_for_an_argument_travels_in_a_file_that_it_does_not_see)
{
	size_t len = 200000;
	auto_free char *word = mem_new(len + 1);
	const char *argv[] = {"eval", word};
	struct outcome got;
	struct request q;
	struct command c;

	memset(word, ' ', len);
	memcpy(word + len - 42, "echo $0 $#; ls /proc/self/fd | tail -n +5;", 42);
	request_of(&q, argv, 2, NULL, 0);
	ASSERT_OK(command_plan(&q.m.argv, false, &q.env, &q.m.env, &c, NULL));
	ASSERT_TRUE(c.script_fd >= 0);
	if (c.script_fd != COMMAND_SCRIPT_FD)
		ASSERT_EQ(dup2(c.script_fd, COMMAND_SCRIPT_FD), COMMAND_SCRIPT_FD);
	ASSERT_OK(fd_set_cloexec(COMMAND_SCRIPT_FD, false));
	run_by_bash(&c, &q, &got);
	ASSERT_STR(got.text, "bash 0\n");
	command_done(&c);
	environment_done(&q.env);
}

TEST(direct_execution_never_has_bash)
{
	const char *argv[] = {"exit", "1"};
	struct request q;
	struct command c;
	struct err e = ERR_NONE;

	request_of(&q, argv, 2, NULL, 0);
	ASSERT_OK(command_plan(&q.m.argv, true, &q.env, &q.m.env, &c, NULL));
	ASSERT_TRUE(c.bash_argv == NULL);
	ASSERT_STR(c.candidates[0], "_=/usr/local/sbin/exit");
	command_done(&c);
	environment_done(&q.env);
	request_of(&q, argv, 0, NULL, 0);
	ASSERT_EQ(command_plan(&q.m.argv, false, &q.env, &q.m.env, &c, &e), -EINVAL);
	environment_done(&q.env);
}

TESTS(RUN(words_come_out_of_bash_as_they_went_in), RUN(quoting_is_that_of_the_contract),
      RUN(what_bash_would_not_look_up_is_left_to_bash), RUN(without_bash_the_outcome_is_the_same),
      RUN(bash_gives_builtins_and_failures_their_status), RUN(variables_that_bash_minds_bring_bash),
      RUN(a_line_too_long_for_an_argument_travels_in_a_file_that_it_does_not_see),
      RUN(direct_execution_never_has_bash))
