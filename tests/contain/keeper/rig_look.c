/* rig_look.c - looking around on the host: processes, logs, records, and whether anything is left. */
#include "rig_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

static bool comm_begins(pid_t pid, const char *name)
{
	char path[64], comm[32];

	(void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
	return fd_read_file(AT_FDCWD, path, comm, sizeof comm) > 0 && strncmp(comm, name, strlen(name)) == 0;
}

/* Children of any thread: the one that forked need not be the first. */
static pid_t find_child(pid_t parent, const char *name)
{
	char path[300], text[8192];
	struct dirent *entry;
	pid_t found = 0;
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/task", parent);
	dir = opendir(path);
	if (!dir) return 0;
	while (!found && (entry = readdir(dir))) {
		(void)snprintf(path, sizeof path, "/proc/%d/task/%s/children", parent, entry->d_name);
		if (entry->d_name[0] == '.' || fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0) continue;
		for (char *at = strtok(text, " "); at && !found; at = strtok(NULL, " ")) {
			if (comm_begins(atoi(at), name)) found = atoi(at);
		}
	}
	closedir(dir);
	return found;
}

pid_t rig_child(pid_t parent, const char *name)
{
	uint64_t until = clock_ms() + RIG_PATIENCE_MS;
	pid_t pid = 0;

	/* The kernel has no event for "has a child"; this looks again and again, and nothing is timed. */
	while (!(pid = find_child(parent, name)) && clock_ms() < until)
		(void)usleep(1000);
	if (!pid) fail_msg("%d has no child %s", parent, name);
	return pid;
}

pid_t rig_keeper(const struct rig *r)
{
	return rig_child(r->serve, "tombolo-keeper");
}

void rig_wait_gone(pid_t pid)
{
	auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0) rig_wait_for_input(fd, "the end of a process");
}

void rig_read_log(const struct rig *r, char *text, size_t size)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/log", r->dir);
	ASSERT_TRUE(fd_read_file(AT_FDCWD, path, text, size) >= 0);
}

/* The directories are called by their runs. */
void rig_record_path(const struct rig *r, const char *id, char *path, size_t size)
{
	char text[2048], line[160];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	(void)snprintf(path, size, "%s/state/sandboxes", r->dir);
	(void)snprintf(line, sizeof line, "\nid %s\n", id);
	dir = opendir(path);
	while (!found && (entry = readdir(dir))) {
		(void)snprintf(path, size, "%s/state/sandboxes/%.64s/record", r->dir, entry->d_name);
		found = entry->d_name[0] != '.' && fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 &&
			strstr(text, line);
	}
	closedir(dir);
	if (!found) fail_msg("there is no record of '%s'", id);
}

unsigned long long rig_record_number(const struct rig *r, const char *id, const char *name)
{
	char path[512], text[2048], *at;

	rig_record_path(r, id, path, sizeof path);
	ASSERT_TRUE(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	at = strstr(text, name);
	ASSERT_TRUE(at != NULL);
	return strtoull(at + strlen(name), NULL, 10);
}

/* ---- nothing is left ---- */

static unsigned count_entries(const struct rig *r, const char *part)
{
	char path[256];
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof path, "%s/state/%s", r->dir, part);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	if (dir) closedir(dir);
	return count;
}

static void check_no_cgroup(const struct rig *r)
{
	static const char *const places[] = {"memory", "pids", "cpu", "unified", "."};
	char path[512], name[64] = "";

	(void)snprintf(path, sizeof path, "%s/state/name", r->dir);
	ASSERT_TRUE(fd_read_file(AT_FDCWD, path, name, sizeof name) > 0);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s/tombolo-%s", places[i], name);
		if (access(path, F_OK) == 0) fail_msg("%s is left", path);
	}
}

/* Whatever ran from the rig's programs, or in a mount namespace with its directories, names them here. */
static bool process_mentions(const char *pid, const char *what, const char *dir)
{
	char path[300], link[512];
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%s/%s", pid, what);
	n = readlink(path, link, sizeof link - 1);
	if (n < 0) return false;
	link[n] = '\0';
	return strncmp(link, dir, strlen(dir)) == 0;
}

static void check_no_process(const struct rig *r)
{
	char dir_name[128];
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	(void)snprintf(dir_name, sizeof dir_name, "%s/", r->dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
		if (process_mentions(entry->d_name, "exe", dir_name))
			fail_msg("process %s of the rig is left", entry->d_name);
	}
	closedir(dir);
}

static void check_no_mount(const struct rig *r)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = fopen("/proc/self/mountinfo", "re");

	while (getline(&text, &size, f) > 0) {
		if (strstr(text, r->dir)) fail_msg("a mount is left: %s", text);
	}
	free(text);
	(void)fclose(f);
}

void rig_check_nothing_left(const struct rig *r)
{
	check_no_process(r);
	check_no_mount(r);
	check_no_cgroup(r);
	ASSERT_EQ(count_entries(r, "sandboxes"), 0);
	ASSERT_EQ(count_entries(r, "spare"), 0);
	ASSERT_EQ(count_entries(r, "run"), 0);
	ASSERT_EQ(count_entries(r, "trash"), 0);
}
