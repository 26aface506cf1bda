/*
 * cgroup_v1.c - three hierarchies. The agent gets the pids directory for its own, and memory and cpu as
 * `tasks` files that we opened: the kernel asks whether the opener may move the process, and an agent
 * could not.
 *
 * `tasks`, not cgroup.procs: a thread that moves itself takes no lock against all forks and exits of the
 * host (cgroup_threadgroup_rwsem, whose writers wait for a grace period), and a process that has just been
 * cloned is one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/cgroup_backend.h"

#define SHARES_OF_ONE 1024 /* an ordinary process, or group */
#define SHARES_MAX    262144

enum { PIDS, MEMORY, CPU };
static const char *const controllers[CGROUP_TREES] = {[PIDS] = "pids", [MEMORY] = "memory", [CPU] = "cpu"};

static int v1_find(struct cgroups *c, struct err *e)
{
	for (unsigned i = 0; i < CGROUP_TREES; i++)
		if (cgroup_mount_find("cgroup", controllers[i], c->tree_paths[i]) < 0)
			return err_say(e, -ENOENT, "the %s controller is mounted nowhere", controllers[i]);
	return 0;
}

static int v1_enable(struct cgroups *c, struct err *e)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	/*
	 * The kernel divides a group's weight among the processors by where its load is. All sandboxes
	 * together weigh as one process on each; less, and a command that runs on a processor where the
	 * others do not waits there for seconds.
	 */
	return cgroup_write(c->tree_fds[CPU], "cpu.shares",
			    MIN((uint64_t)MAX(processors, 1) * SHARES_OF_ONE, SHARES_MAX), e);
}

static int memory_limit(int dir_fd, uint64_t bytes, struct err *e)
{
	int r;

	if (bytes == 0) return 0;
	r = cgroup_write(dir_fd, "memory.limit_in_bytes", bytes, e);
	if (r < 0) return r;
	/* No swap beyond it; a kernel without swap accounting has no such file. */
	r = cgroup_write(dir_fd, "memory.memsw.limit_in_bytes", bytes, NULL);
	return r < 0 && r != -ENOENT ? err_set(e, r, "limit memory and swap") : 0;
}

static int v1_limit(const int dir_fds[CGROUP_TREES], const struct limits *limits, struct err *e)
{
	uint64_t quota_us = cgroup_cpu_quota_us(limits);
	int r = memory_limit(dir_fds[MEMORY], limits->memory_bytes, e);

	if (r == 0) r = cgroup_limit_pids(dir_fds[PIDS], limits->pids, e);
	if (r == 0 && quota_us) r = cgroup_write(dir_fds[CPU], "cpu.cfs_period_us", CGROUP_CPU_PERIOD_US, e);
	if (r == 0 && quota_us) r = cgroup_write(dir_fds[CPU], "cpu.cfs_quota_us", quota_us, e);
	return r;
}

static void v1_favour(const int dir_fds[CGROUP_TREES])
{
	/* Of the cpu group only the zygote is left, see below. */
	(void)cgroup_write(dir_fds[CPU], "cpu.shares", SHARES_MAX, NULL);
}

/* The root of the cpu hierarchy, where the front runs, too. */
static int v1_agents_home(const struct cgroups *c, struct err *e)
{
	char path[sizeof c->tree_paths[CPU] + sizeof "/tasks"];
	int fd;

	(void)snprintf(path, sizeof path, "%s/tasks", c->tree_paths[CPU]);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? err_set(e, -errno, "open '%s'", path) : fd;
}

static void v1_hurry(const int dir_fds[CGROUP_TREES])
{
	(void)cgroup_write_text(dir_fds[CPU], "cpu.cfs_quota_us", "-1", NULL);
	(void)cgroup_write(dir_fds[CPU], "cpu.shares", CGROUP_HURRY * SHARES_OF_ONE, NULL);
}

static int v1_delegate(const int dir_fds[CGROUP_TREES], uint32_t owner, int ret_fds[3], struct err *e)
{
	static const char *const files[] = {"cgroup.procs", "tasks", NULL};
	int r = cgroup_give(dir_fds[PIDS], files, owner, e);

	if (r < 0) return r;
	ret_fds[PIDS] = fcntl(dir_fds[PIDS], F_DUPFD_CLOEXEC, 3);
	if (ret_fds[PIDS] < 0) return err_set(e, -errno, "keep the pids cgroup");
	for (unsigned i = MEMORY; i <= CPU; i++) {
		ret_fds[i] = openat(dir_fds[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (ret_fds[i] < 0) return err_set(e, -errno, "open the %s cgroup", controllers[i]);
	}
	return 0;
}

static void leaf_add_refused(int dir_fd, const char *name, void *ctx)
{
	auto_close int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) *(uint64_t *)ctx += cgroup_read(fd, "pids.events", "max");
}

static void v1_usage(const int dir_fds[CGROUP_TREES], struct usage *ret)
{
	ret->memory_bytes = cgroup_read(dir_fds[MEMORY], "memory.usage_in_bytes", NULL);
	ret->oom_kills = cgroup_read(dir_fds[MEMORY], "memory.oom_control", "oom_kill");
	ret->pids = (uint32_t)cgroup_read(dir_fds[PIDS], "pids.current", NULL);
	/* v1 counts a refusal in the group of the process that forked. */
	ret->pids_refused = cgroup_read(dir_fds[PIDS], "pids.events", "max");
	(void)cgroup_children(dir_fds[PIDS], leaf_add_refused, &ret->pids_refused);
}

const struct cgroup_backend cgroup_v1 = {
	.version = 1,
	.find = v1_find,
	.enable = v1_enable,
	.limit = v1_limit,
	.favour = v1_favour,
	.hurry = v1_hurry,
	.agents_home = v1_agents_home,
	.delegate = v1_delegate,
	.usage = v1_usage,
	.counters = {{MEMORY, "memory.oom_control"},
		     {MEMORY, "memory.usage_in_bytes"},
		     {MEMORY, "memory.stat"},
		     {PIDS, "pids.events"}},
};
