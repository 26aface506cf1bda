#include "isolation/cgroup_backend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

int cgroup_mount_find(const char *type, const char *option, char path[256])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	int r = -ENOENT;

	if (!mounts) return -ENOENT;
	while (r < 0 && (m = getmntent(mounts)))
		if (strcmp(m->mnt_type, type) == 0 && (!option || hasmntopt(m, option)) &&
		    snprintf(path, 256, "%s", m->mnt_dir) < 256)
			r = 0;
	(void)endmntent(mounts);
	return r;
}

int cgroup_write_text(int dir_fd, const char *file, const char *text, struct err *e)
{
	int r = fd_write_file(dir_fd, file, text);

	return r < 0 ? err_set(e, r, "write '%s' to %s", text, file) : 0;
}

int cgroup_write(int dir_fd, const char *file, uint64_t number, struct err *e)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%" PRIu64, number);
	return cgroup_write_text(dir_fd, file, text, e);
}

int cgroup_limit_pids(int dir_fd, uint32_t pids, struct err *e)
{
	int r;

	if (pids) return cgroup_write(dir_fd, "pids.max", pids, e);
	/* A removal that did not get to its end left a 0 here. No such file: a v2 tree without the
	 * controller. */
	r = cgroup_write_text(dir_fd, "pids.max", "max", NULL);
	return r < 0 && r != -ENOENT ? err_set(e, r, "lift the limit of processes") : 0;
}

uint64_t cgroup_read(int dir_fd, const char *file, const char *key)
{
	char text[4096];

	if (fd_read_file(dir_fd, file, text, sizeof text) < 0) return 0;
	if (!key) return strtoull(text, NULL, 10);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		size_t len = strlen(key);

		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ' ') return strtoull(line + len, NULL, 10);
	}
	return 0;
}

int cgroup_give(int dir_fd, const char *const *files, uint32_t owner, struct err *e)
{
	if (fchown(dir_fd, owner, owner) < 0) return err_set(e, -errno, "give away a cgroup");
	for (; *files; files++)
		if (fchownat(dir_fd, *files, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
			return err_set(e, -errno, "give away %s", *files);
	return 0;
}

int cgroup_children(int dir_fd, void (*each)(int dir_fd, const char *name, void *ctx), void *ctx)
{
	auto_close int own_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir;

	if (own_fd < 0) return -errno;
	dir = fdopendir(own_fd);
	if (!dir) return -errno;
	(void)take_fd(&own_fd);
	while ((entry = readdir(dir)))
		if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			each(dir_fd, entry->d_name, ctx);
	(void)closedir(dir);
	return 0;
}

uint64_t cgroup_cpu_quota_us(const struct limits *limits)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (limits->cpu_milli == 0 || limits->cpu_milli >= (uint64_t)MAX(cores, 1) * 1000) return 0;
	return MAX((uint64_t)limits->cpu_milli * CGROUP_CPU_PERIOD_US / 1000, (uint64_t)1000);
}
