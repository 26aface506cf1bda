/* The real hierarchies of this machine, below tombolo-unit-PID; everything made here is removed here. */
#include "isolation/cgroup.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/cgroup_backend.h"
#include "unit.h"

static struct cgroups *cgroups;

static int setup(void **state)
{
	struct err e = ERR_NONE;
	char name[32];

	(void)state;
	(void)snprintf(name, sizeof name, "unit-%d", (int)getpid());
	if (geteuid() != 0 || cgroups_open(name, &cgroups, &e) < 0)
		print_message("skip: needs root and cgroups: %s\n", e.text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cgroups = cgroups_free(cgroups);
	return 0;
}

#define NEEDS_CGROUPS() \
	if (!cgroups) skip()

static void make(const char *id, const struct limits *limits, int fds[3])
{
	struct err e = ERR_NONE;

	if (cgroup_make(cgroups, id, limits, 0x60000000, fds, &e) < 0) fail_msg("%s", e.text);
}

static void fds_close(int fds[3])
{
	for (unsigned i = 0; i < 3; i++)
		fds[i] = fd_close(fds[i]);
}

/* A process that attaches itself as the header says and waits. READY_FD ends when it has. */
static pid_t member_start(const int fds[3], const char *leaf)
{
	int ready[2];
	char byte;
	pid_t pid;

	ASSERT_OK(pipe2(ready, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		char procs[64];

		for (unsigned i = 1; i < 3; i++)
			if (fds[i] >= 0 && write(fds[i], "0", 1) != 1) _exit(1);
		(void)snprintf(procs, sizeof procs, "%s/cgroup.procs", leaf);
		if (fd_write_file(fds[0], procs, "0") < 0) _exit(2);
		(void)close(ready[0]);
		if (write(ready[1], "r", 1) != 1) _exit(3);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

/* Killed processes leave their cgroup some time after the signal, on a clock of the kernel's. */
static void remove_patiently(const char *id)
{
	int r;

	do {
		r = cgroup_remove(cgroups, id);
		if (r == -EBUSY) (void)sched_yield();
	} while (r == -EBUSY);
	ASSERT_OK(r);
}

/* The first call kills; whether the members are gone by the time it looks again is the kernel's affair. */
static void kill_by_removal(const char *id)
{
	int r = cgroup_remove(cgroups, id);

	ASSERT_TRUE(r == 0 || r == -EBUSY);
}

TEST(a_group_is_made_used_and_removed)
{
	const struct limits limits = {.memory_bytes = 64 << 20, .pids = 20, .cpu_milli = 500};
	struct usage usage;
	int fds[3], status;
	pid_t pid;

	NEEDS_CGROUPS();
	make("abc", &limits, fds);
	ASSERT_OK(mkdirat(fds[0], "leaf", 0755));
	pid = member_start(fds, "leaf");
	ASSERT_OK(cgroup_usage(cgroups, "abc", &usage));
	ASSERT_EQ(usage.pids, 1);
	ASSERT_EQ(usage.oom_kills, 0);
	kill_by_removal("abc");
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	remove_patiently("abc");
	ASSERT_EQ(cgroup_usage(cgroups, "abc", &usage), -ENOENT);
	ASSERT_OK(cgroup_remove(cgroups, "abc")); /* gone is gone */
	fds_close(fds);
}

TEST(the_agent_owns_its_groups_and_not_its_limits)
{
	const struct limits limits = {.pids = 20};
	struct stat st;
	int fds[3];

	NEEDS_CGROUPS();
	make("own", &limits, fds);
	ASSERT_OK(fstat(fds[0], &st));
	ASSERT_EQ(st.st_uid, 0x60000000);
	ASSERT_OK(fstatat(fds[0], "cgroup.procs", &st, 0));
	ASSERT_EQ(st.st_uid, 0x60000000);
	ASSERT_OK(fstatat(fds[0], "pids.max", &st, 0));
	ASSERT_EQ(st.st_uid, 0);
	ASSERT_EQ(cgroup_read(fds[0], "pids.max", NULL), 20);
	fds_close(fds);
	remove_patiently("own");
}

TEST(too_many_processes_are_refused_and_counted)
{
	const struct limits limits = {.pids = 2};
	struct usage usage;
	int fds[3], status;
	pid_t pid;

	NEEDS_CGROUPS();
	make("few", &limits, fds);
	ASSERT_OK(mkdirat(fds[0], "leaf", 0755));
	pid = fork();
	if (pid == 0) {
		pid_t one;

		if (fd_write_file(fds[0], "leaf/cgroup.procs", "0") < 0) _exit(1);
		one = fork(); /* the second process: fits */
		if (one == 0)
			for (;;)
				(void)pause();
		_exit(one > 0 && fork() < 0 && errno == EAGAIN ? 0 : 2);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(status, 0);
	ASSERT_OK(cgroup_usage(cgroups, "few", &usage));
	ASSERT_EQ(usage.pids_refused, 1);
	fds_close(fds);
	remove_patiently("few"); /* kills the one that waits */
}

TEST(too_much_memory_kills_and_is_counted)
{
	const struct limits limits = {.memory_bytes = 16 << 20};
	struct usage usage;
	int fds[3], status;
	pid_t pid;

	NEEDS_CGROUPS();
	make("small", &limits, fds);
	pid = fork();
	if (pid == 0) {
		volatile char *bytes;

		for (unsigned i = 1; i < 3; i++)
			if (fds[i] >= 0 && write(fds[i], "0", 1) != 1) _exit(1);
		bytes = malloc(64 << 20);
		for (size_t i = 0; bytes && i < 64 << 20; i += 4096)
			bytes[i] = 1;
		_exit(2);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ASSERT_OK(cgroup_usage(cgroups, "small", &usage));
	ASSERT_EQ(usage.oom_kills, 1);
	ASSERT_TRUE(usage.memory_bytes <= 16 << 20);
	fds_close(fds);
	remove_patiently("small");
}

static unsigned seen;

static void on_each(const char *id, void *ctx)
{
	if (strcmp(id, ctx) == 0) seen++;
	else fail_msg("a stranger: %s", id);
}

TEST(the_sweep_tells_each_sandbox_once_and_not_the_agents)
{
	const struct limits none = {0};
	struct err e = ERR_NONE;
	int fds[3], status;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	if (cgroups) {
		make("swept", &none, fds);
		fds_close(fds);
		if (cgroups_take_agents(cgroups, pid, &e) < 0) fail_msg("%s", e.text);
		seen = 0;
		ASSERT_OK(cgroups_each(cgroups, on_each, (void *)"swept"));
		ASSERT_EQ(seen, 1);
		remove_patiently("swept");
	}
	(void)kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	NEEDS_CGROUPS();
}

TEST(a_removal_that_was_cut_short_leaves_no_limit)
{
	const struct limits none = {0};
	char text[16];
	int fds[3];

	NEEDS_CGROUPS();
	make("again", &none, fds);
	ASSERT_OK(fd_write_file(fds[0], "pids.max", "0"));
	fds_close(fds);
	make("again", &none, fds);
	ASSERT_TRUE(fd_read_file(fds[0], "pids.max", text, sizeof text) > 0);
	ASSERT_STR(text, "max\n");
	fds_close(fds);
	remove_patiently("again");
}

/* A v2 tree is mounted on most v1 hosts, without controllers: enough for all but the limits. */
TEST(who_dies_is_held_back_by_no_quota)
{
	const struct limits limits = {.cpu_milli = 100};
	auto_close int dir_fd = -1;
	int fds[3];
	bool v1;

	NEEDS_CGROUPS();
	v1 = cgroups_version(cgroups) == 1;
	make("dying", &limits, fds);
	dir_fd = openat(cgroups->tree_fds[v1 ? 2 : 0], "dying", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_EQ(cgroup_read(dir_fd, v1 ? "cpu.cfs_quota_us" : "cpu.max", NULL), 10000);
	cgroup_hurry(cgroups, "dying");
	ASSERT_TRUE(cgroup_read(dir_fd, v1 ? "cpu.cfs_quota_us" : "cpu.max", NULL) != 10000);
	ASSERT_EQ(cgroup_read(dir_fd, v1 ? "cpu.shares" : "cpu.weight", NULL),
		  CGROUP_HURRY * (v1 ? 1024 : 100));
	fds_close(fds);
	remove_patiently("dying");
	cgroup_hurry(cgroups, "dying"); /* gone is gone */
}

TEST(version_2_attaches_delegates_and_kills)
{
	/* Static: a check that fails leaves `cgroups` pointing here. */
	static struct cgroups v2 = {.backend = &cgroup_v2, .tree_fds = {-1, -1, -1}};
	struct cgroups *before = cgroups;
	const struct limits none = {0};
	int fds[3], status;
	struct stat st;
	pid_t pid;

	NEEDS_CGROUPS();
	if (cgroup_mount_find("cgroup2", NULL, v2.tree_paths[0]) < 0) {
		print_message("skip: no cgroup2 is mounted\n");
		skip();
	}
	(void)snprintf(v2.name, sizeof v2.name, "tombolo-unit-v2-%d", (int)getpid());
	(void)snprintf(v2.tree_paths[1], sizeof v2.tree_paths[1], "%.180s/%s", v2.tree_paths[0], v2.name);
	ASSERT_OK(mkdir(v2.tree_paths[1], 0755));
	v2.tree_fds[0] = open(v2.tree_paths[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_TRUE(v2.tree_fds[0] >= 0);

	cgroups = &v2;
	make("two", &none, fds);
	ASSERT_TRUE(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -1);
	ASSERT_OK(fstatat(fds[0], "cgroup.procs", &st, 0));
	ASSERT_EQ(st.st_uid, 0x60000000);
	ASSERT_OK(mkdirat(fds[0], "leaf", 0755));
	pid = member_start(fds, "leaf");
	ASSERT_EQ(cgroup_read(fds[0], "leaf/cgroup.procs", NULL), pid);
	kill_by_removal("two");
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	remove_patiently("two");
	fds_close(fds);
	cgroups = before;
	(void)close(v2.tree_fds[0]);
	ASSERT_OK(rmdir(v2.tree_paths[1]));
}

TEST(a_cpu_limit_is_a_share_of_time_unless_it_is_all)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);

	ASSERT_EQ(cgroup_cpu_quota_us(&(struct limits){.cpu_milli = 0}), 0);
	ASSERT_EQ(cgroup_cpu_quota_us(&(struct limits){.cpu_milli = 500}), 50000);
	ASSERT_EQ(cgroup_cpu_quota_us(&(struct limits){.cpu_milli = 1}), 1000); /* the kernel's least */
	ASSERT_EQ(cgroup_cpu_quota_us(&(struct limits){.cpu_milli = (uint32_t)cores * 1000}), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(a_group_is_made_used_and_removed),
		RUN(the_agent_owns_its_groups_and_not_its_limits),
		RUN(too_many_processes_are_refused_and_counted),
		RUN(too_much_memory_kills_and_is_counted),
		RUN(the_sweep_tells_each_sandbox_once_and_not_the_agents),
		RUN(a_removal_that_was_cut_short_leaves_no_limit),
		RUN(who_dies_is_held_back_by_no_quota),
		RUN(version_2_attaches_delegates_and_kills),
		RUN(a_cpu_limit_is_a_share_of_time_unless_it_is_all),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
