#include "isolation/privilege.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "isolation/tree.h"
#include "unit.h"

static char dir[64];
static struct err *shared; /* what a child was told */

static int setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof dir, "/tmp/tombolo-privilege-XXXXXX");
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return mkdtemp(dir) && shared != MAP_FAILED ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	(void)munmap(shared, sizeof *shared);
	return tree_delete(dir);
}

#define NEEDS_ROOT() \
	if (geteuid() != 0) { \
		print_message("skip: needs root\n"); \
		skip(); \
	}

/* Asks in a child that has first become weaker. */
static int ask_weakened(int (*weaken)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (weaken() < 0) _exit(2);
		_exit(privilege_check(dir, shared) < 0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static unsigned entries(void)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2;
}

TEST(this_host_can_and_nothing_is_left)
{
	struct err e = ERR_NONE;

	NEEDS_ROOT();
	if (privilege_check(dir, &e) < 0) {
		print_message("skip: %s\n", e.text);
		skip();
	}
	ASSERT_EQ(e.code, 0);
	ASSERT_EQ(entries(), 0);
}

static int become_user(void)
{
	return setuid(1000);
}

TEST(an_ordinary_user_is_told_to_be_root)
{
	NEEDS_ROOT();
	ASSERT_EQ(ask_weakened(become_user), 1);
	ASSERT_EQ(shared->code, -EPERM);
	assert_non_null(strstr(shared->text, "start the server as root"));
}

TEST(a_place_that_is_not_there_is_named)
{
	struct err e = ERR_NONE;

	NEEDS_ROOT();
	ASSERT_EQ(privilege_check("/dev/null/nowhere", &e), -ENOTDIR);
	assert_non_null(strstr(e.text, "/dev/null/nowhere"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(this_host_can_and_nothing_is_left),
		RUN(an_ordinary_user_is_told_to_be_root),
		RUN(a_place_that_is_not_there_is_named),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
