/* session.c tests src/agent/session.c and session.bash against the bash of this machine. */
#include "agent/session.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/environment.h"
#include "base/err.h"
#include "base/mem.h"
#include "unit.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static uint8_t room[1 << 20];

static size_t count_of(const char *const *texts)
{
	size_t n = 0;

	while (texts && texts[n])
		n++;
	return n;
}

/* As the agent gets it: parsed from a packet. */
static struct msg_open_exec request_of(const char *const *argv, const char *const *env)
{
	const struct msg_open_exec sent = {.cwd = wire_text_of(""),
					   .argv = {.items = argv, .count = (uint32_t)count_of(argv)},
					   .env = {.items = env, .count = (uint32_t)count_of(env)}};
	struct packet p = {.bytes = room, .room = sizeof room};
	struct frame_reader reader;
	struct msg_open_exec m;
	struct frame f;

	ASSERT_OK(msg_open_exec_add(&p, 1, &sent));
	reader = frame_reader_of(p.bytes, p.len);
	ASSERT_EQ(frame_reader_next(&reader, &f), 1);
	ASSERT_OK(msg_open_exec_parse(&f, &m));
	return m;
}

/* What the child of spawn() does. */
static _Noreturn void become(const struct session_start *s, const struct environment *env, int out)
{
	(void)dup2(open("/dev/null", O_RDONLY), 0);
	(void)dup2(out, 1);
	(void)dup2(out, 2);
	for (int i = 0; i < COMMAND_SESSION_FDS; i++) {
		(void)close(COMMAND_SESSION_FD + i);
		if (s->command.session_fds[i] >= 0)
			(void)dup2(s->command.session_fds[i], COMMAND_SESSION_FD + i);
	}
	(void)syscall(SYS_close_range, 3, COMMAND_SESSION_FD - 1, 0);
	(void)syscall(SYS_close_range, COMMAND_SESSION_FD + COMMAND_SESSION_FDS, ~0u, 0);
	if (chdir(s->cwd) < 0) _exit(97);
	(void)execve("/bin/bash", (char *const *)s->command.bash_argv, env->vars);
	_exit(98);
}

struct outcome {
	int code; /* 128 + the signal */
	size_t len;
	char text[16384];
};

static struct outcome last;

static void run_argv(const char *name, const char *const *argv, const char *const *env, const char *cwd)
{
	struct msg_open_exec m = request_of(argv, env);
	struct environment environment;
	struct session_start start;
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	ASSERT_OK(session_start(name, &m.argv, &m.env, cwd, false, &start, NULL));
	ASSERT_OK(environment_build(0, start.cwd, &start.env, &environment, NULL));
	ASSERT_OK(pipe2(ends, O_CLOEXEC));
	pid = fork();
	if (pid == 0) become(&start, &environment, ends[1]);
	(void)close(ends[1]);
	for (last.len = 0; (n = read(ends[0], last.text + last.len, sizeof last.text - 1 - last.len)) > 0;)
		last.len += (size_t)n;
	last.text[last.len] = '\0';
	(void)close(ends[0]);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	last.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	ASSERT_TRUE(session_run_end(start.run, WIFEXITED(status)) == NULL);
	environment_done(&environment);
	session_start_done(&start);
}

/* LINE, evaluated by the shell of the session. Its output. */
static const char *run(const char *name, const char *line)
{
	run_argv(name, LIST("bash", "-c", line), NULL, "");
	return last.text;
}

TEST(state_goes_from_one_command_to_the_next)
{
	(void)run("a", "cd /tmp; x=1; export y=$'two\\nlines'; f() { echo \"f $1\"; }; umask 027; shopt -s "
		       "extglob; set -f");
	ASSERT_STR(run("a", "pwd; echo $x; env | grep -c ^y=; f z; umask; echo $-; echo @(*)"),
		   "/tmp\n1\n1\nf z\n0027\nfhBc\n@(*)\n");
	ASSERT_STR(run("other", "echo ${x-none}"), "none\n");
	ASSERT_OK(session_forget("a"));
	ASSERT_STR(run("a", "echo ${x-none}"), "none\n");
}

TEST(no_text_of_a_command_spoils_what_comes_after)
{
	static const char *const lines[] = {
		"exit 3",
		"exec false",
		"exec true",
		"(exit 4)",
		"kill -9 $$",
		"kill -TERM $$; sleep 9",
		"echo 'x",
		"echo \"x",
		"echo $(",
		"echo ${",
		"if",
		"{",
		"((",
		"cat <<E\nx",
		"cat <<'E'",
		"case x in",
		"f() {",
		"\\",
		"#",
		"",
		" ",
		"\n",
		"set -e; false",
		"set +e",
		"set -u; echo $nothing",
		"set +u",
		"set -x",
		"set -v",
		"set +xv",
		"set -n",
		"set -f; IFS=aeiou:/",
		"unset IFS; set +f",
		"set -o posix",
		"set +o posix",
		"set -k",
		"set +k",
		"set -r",
		"shopt -s nocasematch nullglob failglob",
		"shopt -u nocasematch nullglob failglob",
		"shopt -s localvar_inherit localvar_unset",
		"shopt -u localvar_inherit localvar_unset",
		"trap 'echo bye' EXIT",
		"trap 'exit 7' EXIT",
		"trap 'cd /' DEBUG",
		"trap 'false' ERR; false",
		"trap '' TERM INT HUP",
		"trap 'exit 9' EXIT; exit 8",
		"trap 'kill -9 $$' EXIT",
		"return 5",
		"break",
		"continue",
		"logout",
		"exec 64>&-",
		"exec 10>&-",
		"exec 10>/dev/null",
		"exec 64</dev/null",
		"exec 1>&- 2>&-",
		"ulimit -f 0",
		"readonly kept",
		"readonly PWD OLDPWD IFS _",
		"declare -r __tombolo_v=1",
		"declare -r __tombolo_i=2 __tombolo_same",
		"declare() { :; }; printf() { :; }; unset -f declare printf",
		"alias echo=false; shopt -s expand_aliases",
		"unalias -a; shopt -u expand_aliases",
		"cd /tmp && mkdir -p gone && cd gone && rmdir ../gone",
		"unset PWD OLDPWD HOME",
		"unset PATH",
		"PATH=/usr/bin:/bin HOME=/",
		"export PATH=/usr/bin:/bin",
		"__tombolo_save; x=1",
		"__tombolo() { :; }",
		"unset -f __tombolo_save",
		"declare -a a=(1 '2 3' $'\\n'); declare -A m=(['a b']=\"c'\\\"d\")",
		"v=$'\\xff\\xfe\\x01\\x7f'",
		"declare -n ref=v",
		"export -f nothing",
		"BASH_ENV=/nonexistent; export BASH_ENV",
		"LC_ALL=C",
		"LANG=nonsense LC_ALL=nonsense"};

	(void)run("tough", "kept=yes");
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		(void)run("tough", lines[i]);
		(void)run("tough", "builtin echo \"ok $kept\" 2>/dev/null");
		if (!strstr(last.text, "ok yes\n"))
			fail_msg("after '%s': '%s' (%d)", lines[i], last.text, last.code);
	}
}

TEST(bytes_of_any_kind_leave_the_session_usable)
{
	char line[64];

	srand(1);
	(void)run("noise", "kept=yes");
	for (unsigned i = 0; i < 150; i++) {
		static const char some[] = " \n\t;|&(){}[]<>$`'\"\\#!*?~=%-+:,.a0\x01\x7f\xc3\xa9\xff";
		size_t len = (size_t)rand() % (sizeof line - 1);

		for (size_t k = 0; k < len; k++)
			line[k] = some[(size_t)rand() % (sizeof some - 1)];
		line[len] = '\0';
		/* In a place where nothing can be harmed. */
		run_argv("noise", LIST("bash", "-c", line), LIST("PATH=/nowhere"), "/proc/self");
		(void)run("noise", "echo \"ok $kept\"");
		if (!strstr(last.text, "ok yes\n")) fail_msg("after '%s': '%s'", line, last.text);
	}
}

TEST(what_was_given_with_a_command_is_not_kept)
{
	(void)run("given", "A=own; declare -i N=7; arr=(1 2); cd /usr");
	run_argv("given", LIST("bash", "-c", "pwd; echo $A $B $N ${arr[0]}; env | grep -c '^[ABN]='"),
		 LIST("A=given", "B=b", "N=9", "arr=x", "odd-name=odd"), "/tmp");
	ASSERT_STR(last.text, "/tmp\ngiven b 9 x\n3\n");
	ASSERT_STR(
		run("given", "pwd; echo $A ${B-none} $N ${arr[1]}; env | grep -c '^[AN]='; N=1+1; echo $N"),
		"/usr\nown none 7 2\n0\n2\n");
	run_argv("given", LIST("bash", "-c", "A=changed; unset B; cd /var"), LIST("A=given", "B=b"), "/tmp");
	ASSERT_STR(run("given", "pwd; echo $A ${B-none} $OLDPWD"), "/var\nchanged none /tmp\n");
	run_argv("given", LIST("bash", "-c", "trap 'echo at the end: $A' EXIT"), LIST("A=given"), "");
	ASSERT_STR(last.text, "at the end: given\n");
}

TEST(a_command_sees_nothing_of_ours)
{
	static const char *const looks[][2] = {
		{"echo $0 $# $-; echo $?", "bash 0 hBc\n0\n"},
		{"ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "},
		{"env | grep -ci tombolo", "0\n"},
		{"echo $BASH_EXECUTION_STRING", "echo $BASH_EXECUTION_STRING\n"},
		{"nosuchcommand", "bash: line 1: nosuchcommand: command not found\n"},
		{"trap 'echo E' ERR; false", "E\n"},
		{"set -- a b; echo $#; shift; echo $1", "2\nb\n"},
		{"echo ${FUNCNAME[0]-none} ${BASH_SOURCE[0]-none}", "none none\n"},
	};

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(looks); i++)
			ASSERT_STR(run(round                   ? "seen"
				       : looks[i][0][0] == 'e' ? "fresh1"
							       : "fresh2",
				       looks[i][0]),
				   looks[i][1]);
	}
}

TEST(what_a_shell_tells_of_itself_tells_nothing_of_ours)
{
	static const char *const looks[][2] = {
		{"trap 'echo dbg' DEBUG; x=1", "dbg\n"},
		{"trap 'echo dbg' DEBUG; exit 3", "dbg\n"},
		{"trap 'echo bye; echo err >&2' EXIT; trap 'echo dbg' DEBUG; x=2",
		 "dbg\ndbg\nbye\ndbg\nerr\n"},
		{"set -T; trap 'echo dbg' DEBUG; x=3", "dbg\n"},
		{"echo $x", "3\n"},
		{"trap 'echo ret' RETURN; x=4", ""},
		{"echo $x; set +T", "4\n"},
		{"shopt -s extdebug; trap 'echo dbg' DEBUG; x=5", "dbg\n"},
		{"echo $x; shopt -u extdebug", "5\n"},
		{"set -E; trap 'echo err' ERR; x=6; false", "err\n"},
		{"echo $x; set +E", "6\n"},
		{"set -x; x=7", "++ x=7\n"},
		{"echo $BASH_EXECUTION_STRING",
		 "++ echo echo '$BASH_EXECUTION_STRING'\necho $BASH_EXECUTION_STRING\n"},
		{"\nnosuchcommand", "++ nosuchcommand\nbash: line 2: nosuchcommand: command not found\n"},
		{"shopt -s expand_aliases; alias builtin=false set=false",
		 "++ shopt -s expand_aliases\n++ alias builtin=false set=false\n"},
		{"unalias -a; set +x", "++ unalias -a\n++ false +x\n"},
		{"set +x; shopt -u expand_aliases", "++ set +x\n"},
		{"trap : EXIT; set -x; exit 3", "++ exit 3\n++ builtin exit 3\n+ :\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		(void)run("told", looks[i][0]);
		if (strcmp(last.text, looks[i][1]) != 0) fail_msg("'%s': '%s'", looks[i][0], last.text);
	}
}

TEST(what_a_command_writes_to_our_descriptors_never_becomes_a_program)
{
	(void)run("writer", "x=1");
	(void)run("writer", "exec 66>/dev/null; echo 'x=2' >&66; y=3");
	ASSERT_STR(run("writer", "echo $x ${y-none}"), "1 none\n");
	(void)run("writer", "exec 65</dev/null 66</dev/null; x=4");
	ASSERT_STR(run("writer", "echo $x"), "4\n");
}

TEST(only_a_wrapper_is_unwrapped)
{
	run_argv("w", LIST("cd", "/tmp"), NULL, "");
	ASSERT_STR(run("w", "pwd"), "/tmp\n");
	run_argv("w", LIST("/bin/sh", "-lc", "cd /usr; echo $0"), NULL, "");
	ASSERT_STR(last.text, "/bin/sh\n");
	ASSERT_STR(run("w", "pwd"), "/usr\n");
	run_argv("w", LIST("bash", "-c", "cd /", "arg0"), NULL, "");
	ASSERT_STR(run("w", "pwd"), "/usr\n");
	run_argv("w", LIST("bash", "-ec", "cd /"), NULL, "");
	ASSERT_STR(run("w", "pwd"), "/usr\n");
	run_argv("w", LIST("printf", "%s|", "a b", "it's", "$x", "\n"), NULL, "");
	ASSERT_STR(last.text, "a b|it's|$x|\n|");
	run_argv("w", LIST("exit", "42"), NULL, "");
	ASSERT_EQ(last.code, 42);
}

TEST(a_session_begins_as_it_was_made)
{
	static const char *const env[] = {"A=1", "B=two words", "odd-name=o"};
	const struct msg_open_session made = {
		.name = wire_text_of("made"), .cwd = wire_text_of("/nowhere"), .timeout_ms = 5};
	struct msg_open_session m = made;
	struct msg_open_exec packed =
		request_of(LIST("x"), (const char *const[]){env[0], env[1], env[2], NULL});

	m.env = packed.env;
	ASSERT_OK(session_make(&m));
	ASSERT_EQ(session_make(&m), -EEXIST);
	run_argv("made", LIST("bash", "-c", "[ $PWD = ~ ] && echo home; echo $A $B; env | grep ^odd"),
		 LIST("A=given"), "");
	ASSERT_STR(last.text, "home\ngiven two words\nodd-name=o\n");
	ASSERT_STR(run("made", "echo $A; unset A"), "1\n");
	ASSERT_STR(run("made", "echo ${A-gone} $B"), "gone two words\n");
	ASSERT_OK(session_forget("made"));
	ASSERT_EQ(session_forget("made"), -ENOENT);
}

static void make(const char *name, const char *const *env)
{
	struct msg_open_session m = {.name = wire_text_of(name), .cwd = wire_text_of("/tmp")};
	struct msg_open_exec packed = request_of(LIST("x"), env);

	m.env = packed.env;
	ASSERT_OK(session_make(&m));
}

TEST(what_a_session_begins_with_is_no_setting_of_our_bash)
{
	make("settings", LIST("BASH_ENV=/dev/fd/62", "SHELLOPTS=xtrace:verbose:posix", "BASHOPTS=failglob",
			      "PS4=$(echo ps4 >&2)", "IFS=_", "BASH_XTRACEFD=2", "odd-name=o",
			      "BASH_FUNC_builtin%%=() { echo ours; }", "A=$(echo x) 'y'", "B=(1 2)", "C="));
	for (int round = 0; round < 2; round++)
		ASSERT_STR(run("settings",
			       "echo \"$-|$A|$B|${C-unset}|$BASH_ENV|${#B[@]}\"; echo no*such; "
			       "env | grep -c '^odd-name=o\\|^A=\\|^BASH_ENV=\\|^BASH_FUNC\\|^C=$'"),
			   "hBc|$(echo x) 'y'|(1 2)||/dev/fd/62|1\nno*such\n4\n");
	make("posix", LIST("POSIXLY_CORRECT=1", "A=1"));
	ASSERT_STR(
		run("posix", "echo $A; trap 'echo bye' EXIT; shopt -qo posix && env | grep -c ^POSIX; x=1"),
		"1\n1\nbye\n");
	ASSERT_STR(run("posix", "echo $A $x; shopt -qo posix && echo posix"), "1 1\nposix\n");
	run_argv("given", LIST("bash", "-c", "echo $POSIXLY_CORRECT; trap 'echo bye' EXIT; z=1"),
		 LIST("POSIXLY_CORRECT=1", "BASH_ENV=/dev/fd/62"), "");
	ASSERT_STR(last.text, "1\nbye\n");
	ASSERT_STR(run("given", "echo $z"), "1\n");
	make("odd", LIST("odd-name=o"));
	for (int round = 0; round < 2; round++)
		ASSERT_STR(run("odd", "env | grep ^odd"), "odd-name=o\n");
}

TEST(a_run_of_a_forgotten_session_leaves_nothing)
{
	struct msg_open_exec m = request_of(LIST("true"), NULL);
	struct session_start first, second;

	ASSERT_OK(session_start("gone", &m.argv, &m.env, "", false, &first, NULL));
	ASSERT_OK(session_start("gone", &m.argv, &m.env, "", false, &second, NULL));
	ASSERT_OK(session_forget("gone"));
	ASSERT_TRUE(session_run_end(first.run, true) == NULL);
	ASSERT_TRUE(session_run_end(second.run, false) == NULL);
	session_start_done(&first);
	session_start_done(&second);
	ASSERT_EQ(session_forget("gone"), -ENOENT);
}

TEST(names_and_commands_that_cannot_be_are_refused)
{
	struct msg_open_exec m = request_of(LIST("true"), NULL);
	struct session_start start;
	struct wire_list none = {0};

	ASSERT_EQ(session_start("a/b", &m.argv, &m.env, "", false, &start, NULL), -EINVAL);
	ASSERT_EQ(session_start("", &m.argv, &m.env, "", false, &start, NULL), -EINVAL);
	ASSERT_EQ(session_start("ok", &none, &m.env, "", false, &start, NULL), -EINVAL);
}

TESTS(RUN(state_goes_from_one_command_to_the_next), RUN(no_text_of_a_command_spoils_what_comes_after),
      RUN(bytes_of_any_kind_leave_the_session_usable), RUN(what_was_given_with_a_command_is_not_kept),
      RUN(a_command_sees_nothing_of_ours), RUN(what_a_shell_tells_of_itself_tells_nothing_of_ours),
      RUN(what_a_command_writes_to_our_descriptors_never_becomes_a_program), RUN(only_a_wrapper_is_unwrapped),
      RUN(a_session_begins_as_it_was_made), RUN(what_a_session_begins_with_is_no_setting_of_our_bash),
      RUN(a_run_of_a_forgotten_session_leaves_nothing), RUN(names_and_commands_that_cannot_be_are_refused))
