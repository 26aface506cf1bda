/*
 * cgroup_v2.c - one hierarchy. The limits are on the sandbox's directory; leaf groups below it have no
 * controllers of their own, they only say which process belongs to which exec.
 *
 * To move a process, its mover must be able to write the cgroup.procs of the common ancestor. Within the
 * sandbox's directory the agent can. Into it, from where the agents live, only we can: hence the second
 * descriptor, a cgroup.procs that we opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/cgroup_backend.h"

#define WEIGHT_OF_ONE 100

static const char *const controllers[] = {"memory", "pids", "cpu"};

/* Whether WORD is one of the words of TEXT. */
static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len)
		if ((at == text || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\n' || at[len] == '\0'))
			return true;
	return false;
}

static int v2_find(struct cgroups *c, struct err *e)
{
	char path[256], file[300], text[1024];

	if (cgroup_mount_find("cgroup2", NULL, path) < 0) return err_say(e, -ENOENT, "not mounted");
	(void)snprintf(file, sizeof file, "%s/cgroup.controllers", path);
	if (fd_read_file(AT_FDCWD, file, text, sizeof text) < 0) return err_say(e, -ENOENT, "no '%s'", file);
	for (unsigned i = 0; i < ARRAY_LEN(controllers); i++)
		if (!has_word(text, controllers[i]))
			return err_say(e, -ENOENT, "'%s' offers no %s controller", path, controllers[i]);
	(void)snprintf(c->tree_paths[0], sizeof c->tree_paths[0], "%s", path);
	return 0;
}

/* One at a time: the kernel takes all or nothing, and would not say which one it did not like. */
static int children_enable(int dir_fd, const char *path, struct err *e)
{
	for (unsigned i = 0; i < ARRAY_LEN(controllers); i++) {
		char word[16];
		int r;

		(void)snprintf(word, sizeof word, "+%s", controllers[i]);
		r = fd_write_file(dir_fd, "cgroup.subtree_control", word);
		if (r == -EBUSY)
			return err_say(e, r,
				       "'%s' holds processes itself, so it cannot hand the %s controller to "
				       "children: "
				       "start the server from a cgroup that is delegated to it and empty",
				       path, controllers[i]);
		if (r < 0)
			return err_set(e, r, "hand the %s controller to the children of '%s'", controllers[i],
				       path);
	}
	return 0;
}

static int v2_enable(struct cgroups *c, struct err *e)
{
	auto_close int root_fd = open(c->tree_paths[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (root_fd < 0) return err_set(e, -errno, "open '%s'", c->tree_paths[0]);
	r = children_enable(root_fd, c->tree_paths[0], e);
	return r < 0 ? r : children_enable(c->tree_fds[0], c->name, e);
}

static int cpu_limit(int dir_fd, const struct limits *limits, struct err *e)
{
	uint64_t quota_us = cgroup_cpu_quota_us(limits);
	char text[48];

	if (quota_us == 0) return 0;
	(void)snprintf(text, sizeof text, "%u %u", (unsigned)quota_us, CGROUP_CPU_PERIOD_US);
	return cgroup_write_text(dir_fd, "cpu.max", text, e);
}

static int memory_limit(int dir_fd, uint64_t bytes, struct err *e)
{
	int r;

	if (bytes == 0) return 0;
	r = cgroup_write(dir_fd, "memory.max", bytes, e);
	if (r < 0) return r;
	r = cgroup_write(dir_fd, "memory.swap.max", 0, NULL); /* no such file on a kernel without swap */
	return r < 0 && r != -ENOENT ? err_set(e, r, "forbid swap") : 0;
}

static int v2_limit(const int dir_fds[CGROUP_TREES], const struct limits *limits, struct err *e)
{
	int r = memory_limit(dir_fds[0], limits->memory_bytes, e);

	if (r == 0) r = cgroup_limit_pids(dir_fds[0], limits->pids, e);
	if (r == 0) r = cpu_limit(dir_fds[0], limits, e);
	return r;
}

static void v2_favour(const int dir_fds[CGROUP_TREES])
{
	(void)cgroup_write(dir_fds[0], "cpu.weight", 10000, NULL);
}

/* Where they were born. */
static int v2_agents_home(const struct cgroups *c, struct err *e)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)c;
	return fd < 0 ? err_set(e, -errno, "open /dev/null") : fd;
}

static void v2_hurry(const int dir_fds[CGROUP_TREES])
{
	(void)cgroup_write_text(dir_fds[0], "cpu.max", "max", NULL);
	(void)cgroup_write(dir_fds[0], "cpu.weight", CGROUP_HURRY * WEIGHT_OF_ONE, NULL);
}

static int v2_delegate(const int dir_fds[CGROUP_TREES], uint32_t owner, int ret_fds[3], struct err *e)
{
	/* What the kernel's manual names for delegation; the limits stay ours. */
	static const char *const files[] = {"cgroup.procs", "cgroup.threads", "cgroup.subtree_control", NULL};
	int r = cgroup_give(dir_fds[0], files, owner, e);

	if (r < 0) return r;
	ret_fds[0] = fcntl(dir_fds[0], F_DUPFD_CLOEXEC, 3);
	if (ret_fds[0] < 0) return err_set(e, -errno, "keep the cgroup");
	ret_fds[1] = openat(dir_fds[0], "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return ret_fds[1] < 0 ? err_set(e, -errno, "open cgroup.procs") : 0;
}

static void v2_usage(const int dir_fds[CGROUP_TREES], struct usage *ret)
{
	ret->memory_bytes = cgroup_read(dir_fds[0], "memory.current", NULL);
	ret->oom_kills = cgroup_read(dir_fds[0], "memory.events", "oom_kill");
	ret->pids = (uint32_t)cgroup_read(dir_fds[0], "pids.current", NULL);
	ret->pids_refused = cgroup_read(dir_fds[0], "pids.events", "max");
}

const struct cgroup_backend cgroup_v2 = {
	.version = 2,
	.find = v2_find,
	.enable = v2_enable,
	.limit = v2_limit,
	.favour = v2_favour,
	.hurry = v2_hurry,
	.agents_home = v2_agents_home,
	.delegate = v2_delegate,
	.usage = v2_usage,
	.counters = {{0, "memory.events"}, {0, "memory.current"}, {0, "memory.stat"}, {0, "pids.events"}},
};
