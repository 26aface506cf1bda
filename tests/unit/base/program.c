/*
 * program.c - unit test of base/program.h. The test is its own programs: copies of it lie in a directory that
 * only root can enter, one of them starts another as somebody else.
 */
#include "base/program.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

#define NOBODY  65534
#define NICE    (-3)
#define STARTER "starter"
#define STARTED "tombolo-started"

static char dir[] = "/tmp/tombolo-unit-program-XXXXXX";

/* As STARTER, with the pipe's end for the other as descriptor 3. */
static int start_another(void)
{
	const char *const args[] = {"as", "somebody", NULL};
	const int fds[] = {3};
	struct program p = {.name = STARTED,
			    .args = args,
			    .fds = fds,
			    .fd_count = 1,
			    .drop = true,
			    .uid = NOBODY,
			    .gid = NOBODY};
	struct err e = ERR_NONE;
	pid_t pid;
	int status;

	(void)setsid(); /* not the session of who runs the tests */
	program_set_priority(NICE);
	if (program_start(&p, &pid, &e) < 0) {
		(void)dprintf(3, "%s", e.text);
		return 1;
	}
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

/* As STARTED. */
static int tell_who(int argc, char **argv)
{
	char group[128] = "";
	const char *session_nice = " nice none"; /* a kernel without autogroup */

	if (fd_read_file(AT_FDCWD, "/proc/self/autogroup", group, sizeof group) > 0) {
		group[strcspn(group, "\n")] = '\0';
		session_nice = strchr(group, ' ') ? strchr(group, ' ') : "";
	}
	(void)dprintf(3, "%s %d uid %d gid %d nice %d session%s %s", argv[0], argc, (int)getuid(),
		      (int)getgid(), getpriority(PRIO_PROCESS, 0), session_nice, argv[argc - 1]);
	return 0;
}

static void copy_to(const char *name)
{
	char path[128];
	auto_close int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	auto_close int to = -1;
	char piece[65536];
	ssize_t n;

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ASSERT_TRUE(from >= 0 && to >= 0);
	while ((n = read(from, piece, sizeof piece)) > 0)
		ASSERT_OK(fd_write_all(to, piece, (size_t)n));
	ASSERT_EQ(n, 0);
}

static void remove_copy(const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	(void)unlink(path);
}

/* Runs the copy STARTER; RET is what came through the pipe. */
static int run_starter(char *ret, size_t room)
{
	char path[128];
	int pipe_fds[2], status;
	ssize_t n;
	pid_t pid;

	(void)snprintf(path, sizeof path, "%s/%s", dir, STARTER);
	ASSERT_OK(pipe2(pipe_fds, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		char *argv[] = {STARTER, NULL}, *env[] = {NULL};

		if (dup2(pipe_fds[1], 3) < 0 || fd_set_cloexec(3, false) < 0) _exit(126);
		execve(path, argv, env);
		_exit(127);
	}
	(void)close(pipe_fds[1]);
	n = read(pipe_fds[0], ret, room - 1);
	ret[MAX(n, 0)] = '\0';
	(void)close(pipe_fds[0]);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

TEST(a_program_runs_as_a_user_who_cannot_reach_its_file_and_with_our_priority)
{
	bool has_groups = access("/proc/self/autogroup", F_OK) == 0;
	char said[256];

	if (getuid() != 0) skip();         /* only root becomes somebody else */
	ASSERT_TRUE(mkdtemp(dir) != NULL); /* 0700 */
	copy_to(STARTER);
	copy_to(STARTED);
	ASSERT_OK(run_starter(said, sizeof said));
	ASSERT_STR(said, has_groups ? STARTED " 3 uid 65534 gid 65534 nice -3 session nice -3 somebody"
				    : STARTED " 3 uid 65534 gid 65534 nice -3 session nice none somebody");
	remove_copy(STARTED);
	ASSERT_TRUE(run_starter(said, sizeof said) != 0);
	ASSERT_TRUE(strstr(said, "there is no program " STARTED) != NULL);
	remove_copy(STARTER);
	ASSERT_OK(rmdir(dir));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RUN(a_program_runs_as_a_user_who_cannot_reach_its_file_and_with_our_priority),
	};

	if (strcmp(argv[0], STARTER) == 0) return start_another();
	if (strcmp(argv[0], STARTED) == 0) return tell_who(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
