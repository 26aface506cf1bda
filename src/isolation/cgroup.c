/*
 * cgroup.c - what is the same in both versions: directories. Limits, delegation and counters are
 * cgroup_v1.c's and cgroup_v2.c's, the tools of both are cgroup_backend.c's.
 *
 *     HIERARCHY/tombolo-NAME/_agents    the zygote and all agents
 *     HIERARCHY/tombolo-NAME/ID         a sandbox; holds processes and leaf groups, one a running exec
 *
 * A name that begins with '_' cannot be a sandbox's id.
 */
#include "isolation/cgroup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/program.h"
#include "isolation/cgroup_backend.h"

#define AGENTS    "_agents"
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- opening and closing ---- */

static const struct cgroup_backend *backend_choose(struct cgroups *c, struct err *e)
{
	struct err of_v2 = ERR_NONE, of_v1 = ERR_NONE;

	if (cgroup_v2.find(c, &of_v2) == 0) return &cgroup_v2;
	if (cgroup_v1.find(c, &of_v1) == 0) return &cgroup_v1;
	(void)err_say(e, -ENOENT, "no usable cgroups: v2: %.100s; v1: %.100s", of_v2.text, of_v1.text);
	return NULL;
}

static int parents_make(struct cgroups *c, struct err *e)
{
	for (unsigned i = 0; i < CGROUP_TREES && c->tree_paths[i][0]; i++) {
		char path[sizeof c->tree_paths[i] + sizeof c->name + 1];

		(void)snprintf(path, sizeof path, "%s/%s", c->tree_paths[i], c->name);
		if (mkdir(path, 0755) < 0 && errno != EEXIST) return err_set(e, -errno, "make '%s'", path);
		c->tree_fds[i] = open(path, DIR_FLAGS);
		if (c->tree_fds[i] < 0) return err_set(e, -errno, "open '%s'", path);
	}
	return 0;
}

int cgroups_open(const char *name, struct cgroups **ret, struct err *e)
{
	struct cgroups *c = mem_new(sizeof *c);
	int r;

	for (unsigned i = 0; i < CGROUP_TREES; i++)
		c->tree_fds[i] = -1;
	if (snprintf(c->name, sizeof c->name, "tombolo-%s", name) >= (int)sizeof c->name)
		r = err_say(e, -ENAMETOOLONG, "the cgroup name '%s' is too long", name);
	else r = (c->backend = backend_choose(c, e)) ? 0 : -ENOENT;
	if (r == 0) r = parents_make(c, e);
	if (r == 0) r = c->backend->enable(c, e);
	if (r < 0) {
		(void)cgroups_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct cgroups *cgroups_free(struct cgroups *c)
{
	if (!c) return NULL;
	for (unsigned i = 0; i < CGROUP_TREES; i++) {
		char path[sizeof c->tree_paths[i] + sizeof c->name + 1];

		if (c->tree_fds[i] < 0) continue;
		(void)fd_remove(c->tree_fds[i], AGENTS, AT_REMOVEDIR);
		(void)close(c->tree_fds[i]);
		(void)snprintf(path, sizeof path, "%s/%s", c->tree_paths[i], c->name);
		(void)rmdir(path); /* refuses while sandboxes live in it: that is what we want */
	}
	free(c);
	return NULL;
}

unsigned cgroups_version(const struct cgroups *c)
{
	return c->backend->version;
}

bool cgroups_namespace_fits(const struct cgroups *c)
{
	char path[256];

	return c->backend->version == 1 || cgroup_mount_find("cgroup2", "nsdelegate", path) < 0;
}

/* ---- directories of a sandbox ---- */

static void dirs_close(int dir_fds[CGROUP_TREES])
{
	for (unsigned i = 0; i < CGROUP_TREES; i++)
		dir_fds[i] = fd_close(dir_fds[i]);
}

/* Opens the directories that there are; 0, or -ENOENT when there is none at all. */
static int dirs_open(struct cgroups *c, const char *id, int dir_fds[CGROUP_TREES])
{
	int r = -ENOENT;

	for (unsigned i = 0; i < CGROUP_TREES; i++) {
		dir_fds[i] = c->tree_fds[i] < 0 ? -1 : openat(c->tree_fds[i], id, DIR_FLAGS);
		if (dir_fds[i] >= 0) r = 0;
	}
	return r;
}

static int dirs_make(struct cgroups *c, const char *id, int dir_fds[CGROUP_TREES], struct err *e)
{
	for (unsigned i = 0; i < CGROUP_TREES; i++)
		dir_fds[i] = -1;
	for (unsigned i = 0; i < CGROUP_TREES && c->tree_fds[i] >= 0; i++) {
		if (mkdirat(c->tree_fds[i], id, 0755) < 0 && errno != EEXIST)
			return err_set(e, -errno, "make the cgroup '%s' below '%s'", id, c->tree_paths[i]);
		dir_fds[i] = openat(c->tree_fds[i], id, DIR_FLAGS);
		if (dir_fds[i] < 0)
			return err_set(e, -errno, "open the cgroup '%s' below '%s'", id, c->tree_paths[i]);
	}
	return 0;
}

int cgroups_take_agents(struct cgroups *c, pid_t pid, struct err *e)
{
	int dir_fds[CGROUP_TREES];
	int r = dirs_make(c, AGENTS, dir_fds, e);

	/* Back to back: the first attach may wait for the kernel's grace period, the others ride on it. */
	for (unsigned i = 0; i < CGROUP_TREES && r == 0; i++)
		if (dir_fds[i] >= 0) r = cgroup_write(dir_fds[i], "cgroup.procs", (uint64_t)pid, e);
	if (r == 0) c->backend->favour(dir_fds);
	dirs_close(dir_fds);
	return r;
}

int cgroups_agents_home(const struct cgroups *c, struct err *e)
{
	return c->backend->agents_home(c, e);
}

int cgroup_make(struct cgroups *c, const char *id, const struct limits *limits, uint32_t owner,
		int ret_fds[3], struct err *e)
{
	int dir_fds[CGROUP_TREES], fds[3] = {-1, -1, -1};
	int r;

	assert(id[0] != '_');
	r = dirs_make(c, id, dir_fds, e);
	if (r == 0) r = c->backend->limit(dir_fds, limits, e);
	if (r == 0) r = c->backend->delegate(dir_fds, owner, fds, e);
	dirs_close(dir_fds);
	if (r < 0) {
		dirs_close(fds);
		(void)cgroup_remove(c, id);
		return r;
	}
	memcpy(ret_fds, fds, sizeof fds);
	return 0;
}

int cgroup_usage(struct cgroups *c, const char *id, struct usage *ret)
{
	int dir_fds[CGROUP_TREES];
	struct usage usage = {0};
	int r = dirs_open(c, id, dir_fds);

	if (r < 0) return r;
	c->backend->usage(dir_fds, &usage);
	dirs_close(dir_fds);
	*ret = usage;
	return 0;
}

void cgroup_counters_open(struct cgroups *c, const char *id, int ret_fds[CGROUP_COUNTERS])
{
	int dir_fds[CGROUP_TREES];

	(void)dirs_open(c, id, dir_fds);
	for (unsigned i = 0; i < CGROUP_COUNTERS; i++) {
		int dir_fd = dir_fds[c->backend->counters[i].tree];

		ret_fds[i] =
			dir_fd < 0 ? -1 : openat(dir_fd, c->backend->counters[i].file, O_RDONLY | O_CLOEXEC);
	}
	dirs_close(dir_fds);
}

/* ---- the end ---- */

void cgroup_hurry(struct cgroups *c, const char *id)
{
	int dir_fds[CGROUP_TREES];

	if (dirs_open(c, id, dir_fds) == 0) c->backend->hurry(dir_fds);
	dirs_close(dir_fds);
}

/* A pid of 0 is a process of a pid namespace that is not ours: not visible, so not ours to kill. */
static void processes_kill(int dir_fd)
{
	auto_close int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *procs = fd < 0 ? NULL : fdopen(fd, "r");
	long pid;

	if (!procs) return;
	(void)take_fd(&fd);
	while (fscanf(procs, "%ld", &pid) == 1)
		if (pid > 1) (void)program_signal((pid_t)pid, SIGKILL);
	(void)fclose(procs);
}

static void leaf_remove(int dir_fd, const char *name, void *ctx)
{
	auto_close int fd = openat(dir_fd, name, DIR_FLAGS);

	(void)ctx;
	if (fd < 0) return;
	(void)cgroup_children(fd, leaf_remove, NULL);
	processes_kill(fd);
	(void)fd_remove(dir_fd, name, AT_REMOVEDIR);
}

static int group_remove(int tree_fd, const char *id)
{
	auto_close int fd = -1;

	/* Most have no leaf any more, and nobody in them. */
	if (unlinkat(tree_fd, id, AT_REMOVEDIR) == 0) return 0;
	fd = openat(tree_fd, id, DIR_FLAGS);
	if (fd < 0) return errno == ENOENT ? 0 : -errno;
	/* Files of one version or controller only. No more forks, no frost, and on v2 one write that kills
	 * all. */
	(void)fd_write_file(fd, "pids.max", "0");
	(void)fd_write_file(fd, "cgroup.freeze", "0");
	(void)fd_write_file(fd, "cgroup.kill", "1");
	(void)cgroup_children(fd, leaf_remove, NULL);
	processes_kill(fd);
	return fd_remove(tree_fd, id, AT_REMOVEDIR);
}

int cgroup_remove(struct cgroups *c, const char *id)
{
	int r = 0;

	for (unsigned i = 0; i < CGROUP_TREES; i++) {
		int one = c->tree_fds[i] < 0 ? 0 : group_remove(c->tree_fds[i], id);

		if (one < 0) r = one;
	}
	return r;
}

/* ---- the sweep ---- */

struct sweep {
	struct cgroups *c;
	unsigned tree;
	void (*each)(const char *id, void *ctx);
	void *ctx;
};

static void sweep_one(int dir_fd, const char *name, void *ctx)
{
	struct sweep *s = ctx;
	struct stat st;

	(void)dir_fd;
	if (name[0] == '_') return;
	/* A half-removed sandbox may be in the last hierarchy only, a whole one is in all: tell it once. */
	for (unsigned i = 0; i < s->tree; i++)
		if (fstatat(s->c->tree_fds[i], name, &st, AT_SYMLINK_NOFOLLOW) == 0) return;
	s->each(name, s->ctx);
}

int cgroups_each(struct cgroups *c, void (*each)(const char *id, void *ctx), void *ctx)
{
	struct sweep s = {.c = c, .each = each, .ctx = ctx};
	int r = 0;

	for (s.tree = 0; s.tree < CGROUP_TREES && r == 0; s.tree++)
		if (c->tree_fds[s.tree] >= 0) r = cgroup_children(c->tree_fds[s.tree], sweep_one, &s);
	return r;
}
