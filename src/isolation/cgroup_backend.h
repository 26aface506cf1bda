/* cgroup_backend.h - what cgroup v1 and v2 do differently. Private to the room. */
#pragma once

#include "isolation/cgroup.h"

#define CGROUP_TREES 3

struct cgroup_backend;

struct cgroups {
	const struct cgroup_backend *backend;
	char name[64]; /* of the parent directory */
	/*
	 * The parent directory in each hierarchy, -1 for none. v1: pids, memory, cpu (the order of enum
	 * limits_fd). v2: only the first.
	 */
	int tree_fds[CGROUP_TREES];
	char tree_paths[CGROUP_TREES][256]; /* where the hierarchies are mounted */
};

struct cgroup_backend {
	unsigned version;
	/* Fills tree_paths and prepares them for children. -ENOENT: this host has not that version (E says
	 * what lacks). */
	int (*find)(struct cgroups *c, struct err *e);
	/* The parent directories exist: lets them have children with limits. */
	int (*enable)(struct cgroups *c, struct err *e);
	/* DIR_FDS are the sandbox's directories, as in tree_fds. */
	int (*limit)(const int dir_fds[CGROUP_TREES], const struct limits *limits, struct err *e);
	/*
	 * Agents go before what they serve. In a group beside the sandboxes' they would get one share among
	 * many, and on a processor where the others do not run next to nothing: seconds, until a woken agent
	 * ran. DIR_FDS is their group.
	 */
	void (*favour)(const int dir_fds[CGROUP_TREES]);
	/* See cgroups_agents_home(). */
	int (*agents_home)(const struct cgroups *c, struct err *e);
	/* Its processes are dying, and the quota shall not hold that up. */
	void (*hurry)(const int dir_fds[CGROUP_TREES]);
	int (*delegate)(const int dir_fds[CGROUP_TREES], uint32_t owner, int ret_fds[3], struct err *e);
	void (*usage)(const int dir_fds[CGROUP_TREES], struct usage *ret);
	/* See cgroup_counters_open(): which tree, and the file in it. */
	struct {
		unsigned tree;
		const char *file;
	} counters[CGROUP_COUNTERS];
};

extern const struct cgroup_backend cgroup_v1, cgroup_v2;

/* ---- what both use ---- */

/* Mount point of the file system TYPE ("cgroup", "cgroup2") with OPTION (NULL: any). 0 or -ENOENT. */
int cgroup_mount_find(const char *type, const char *option, char path[256]);

/* E of NULL is fine. */
int cgroup_write(int dir_fd, const char *file, uint64_t number, struct err *e);
int cgroup_write_text(int dir_fd, const char *file, const char *text, struct err *e);

/* The same file in both versions; 0 is none. */
int cgroup_limit_pids(int dir_fd, uint32_t pids, struct err *e);

/* The number in the file, or behind KEY (non-NULL) at the start of one of its lines; 0 when there is none. */
uint64_t cgroup_read(int dir_fd, const char *file, const char *key);

/* Gives the directory itself and the FILES in it (NULL-terminated) to the host uid. */
int cgroup_give(int dir_fd, const char *const *files, uint32_t owner, struct err *e);

/* Calls EACH for each directory below DIR_FD, which stays open. */
int cgroup_children(int dir_fd, void (*each)(int dir_fd, const char *name, void *ctx), void *ctx);

#define CGROUP_HURRY 10 /* times the weight of an ordinary group */

/* CFS period we use, and the quota in it; 0 when the limit is none. */
#define CGROUP_CPU_PERIOD_US 100000u
uint64_t cgroup_cpu_quota_us(const struct limits *limits);
