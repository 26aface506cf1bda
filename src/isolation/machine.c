#include "isolation/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

#define WRITABLE      "/w" /* the template once more, for making files in it */
#define PROCESSOR_MAX 4096
#define CGROUP_FILES  "c" /* in the template: mount points of the files of /sys/fs/cgroup */

static const struct {
	const char *name; /* below /proc, or below /sys/fs/cgroup */
	bool of_cgroup;
} files[MACHINE_FILES] = {
	[MACHINE_MEMINFO] = {"meminfo", false},
	[MACHINE_CPUINFO] = {"cpuinfo", false},
	[MACHINE_STAT] = {"stat", false},
	[MACHINE_UPTIME] = {"uptime", false},
	[MACHINE_LOADAVG] = {"loadavg", false},
	[MACHINE_SWAPS] = {"swaps", false},
	[MACHINE_MEMORY_MAX] = {"memory.max", true},
	[MACHINE_CPU_MAX] = {"cpu.max", true},
	[MACHINE_PIDS_MAX] = {"pids.max", true},
};

/* Where programs that know version 1 only look. */
static const struct {
	const char *name, *target;
} links[] = {
	{CGROUP_FILES "/memory/memory.limit_in_bytes", "../memory.max"},
	{CGROUP_FILES "/pids/pids.max", "../pids.max"},
};

static char processor[PROCESSOR_MAX];
static int fds[MACHINE_FILES];

void machine_remember(void)
{
	ssize_t n = fd_read_file(AT_FDCWD, "/proc/cpuinfo", processor, sizeof processor);
	char *end = n > 0 ? strstr(processor, "\n\n") : NULL;

	/* A machine whose processors need more words than that has none. */
	if (end) end[1] = '\0';
	else processor[0] = '\0';
}

const char *machine_processor(void)
{
	return processor;
}

int machine_fd(enum machine_file file)
{
	return fds[file] > 0 ? fds[file] : -1;
}

static int placeholder_make(const char *name, struct err *e)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof path, CGROUP_FILES "/%s", name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0) return err_set(e, -errno, "make '%s'", path);
	(void)close(fd);
	return 0;
}

int machine_template_make(struct err *e)
{
	static const char *const dirs[] = {CGROUP_FILES, CGROUP_FILES "/memory", CGROUP_FILES "/pids",
					   &MACHINE_CGROUP_DIR[1], &WRITABLE[1]};
	int r = 0;

	for (unsigned i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0) return err_set(e, -errno, "make '%s'", dirs[i]);
	for (unsigned i = 0; i < MACHINE_FILES && r == 0; i++)
		if (files[i].of_cgroup) r = placeholder_make(files[i].name, e);
	for (unsigned i = 0; i < ARRAY_LEN(links) && r == 0; i++)
		if (symlink(links[i].target, links[i].name) < 0)
			r = err_set(e, -errno, "make '%s'", links[i].name);
	if (r == 0 && mount(".", &WRITABLE[1], NULL, MS_BIND, NULL) < 0)
		r = err_set(e, -errno, "bind the template");
	return r;
}

/* The kernel binds nothing without a name: it has one until then, that other agents do not use. */
static int file_park(unsigned i, const char *proc_dir, struct err *e)
{
	char name[48], to[64];
	uint64_t random;
	int fd, r = 0;

	id_random(&random, sizeof random);
	(void)snprintf(name, sizeof name, WRITABLE "/%s-%016" PRIx64, files[i].name, random);
	fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0444);
	if (fd < 0) return err_set(e, -errno, "make a file of the machine");
	(void)snprintf(to, sizeof to, "%s/%s", files[i].of_cgroup ? MACHINE_CGROUP_DIR : proc_dir,
		       files[i].name);
	if (mount(name, to, NULL, MS_BIND, NULL) < 0) r = -errno;
	(void)unlink(name);
	if (r < 0) {
		(void)close(fd);
		/* A kernel without it: then the sandbox has none either. */
		return r == -ENOENT ? 0 : err_set(e, r, "show '%s'", to);
	}
	fds[i] = fd;
	return 0;
}

int machine_park(const char *proc_dir, struct err *e)
{
	int r = 0;

	if (mount("/" CGROUP_FILES, MACHINE_CGROUP_DIR, NULL, MS_BIND, NULL) < 0)
		return err_set(e, -errno, "bind the files of /sys/fs/cgroup");
	for (unsigned i = 0; i < MACHINE_FILES && r == 0; i++)
		r = file_park(i, proc_dir, e);
	return r;
}
