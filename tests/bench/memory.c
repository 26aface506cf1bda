#include "memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/mem.h"

#define KERNEL_STACK_KIB 16 /* of a thread; x86-64 and arm64 */

struct process {
	pid_t pid, parent;
	char name[16];
	bool ours;
};

/* The value of the line "NAME: 123 kB" of a /proc file, 0 if there is none. */
static double line_kib(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, name, len) == 0 && line[len] == ':') return atof(line + len + 1);
	return 0;
}

static bool read_process(const char *pid, struct process *ret)
{
	char path[64], text[1024], *open, *close;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	if (fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0) return false;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close) return false;
	*close = '\0';
	*ret = (struct process){.pid = atoi(pid)};
	snprintf(ret->name, sizeof ret->name, "%.15s", open + 1);
	return sscanf(close + 1, " %*c %d", &ret->parent) == 1;
}

/* Marks ROOT and all below it. Parents may come after their children in /proc: until nothing changes. */
static void mark_family(struct process *all, size_t count, pid_t root)
{
	bool changed = true;

	for (size_t i = 0; i < count; i++)
		all[i].ours = all[i].pid == root;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < count; i++)
			for (size_t j = 0; j < count && !all[i].ours; j++)
				if (all[j].ours && all[j].pid == all[i].parent) all[i].ours = changed = true;
	}
}

/* All processes of the host, with ROOT and everything below it marked. */
static size_t read_family(pid_t root, struct process **ret)
{
	size_t count = 0, room = 0;
	struct process *all = NULL;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
		if (count == room) {
			room = room ? room * 2 : 256;
			all = mem_grow(all, room, sizeof *all);
		}
		if (read_process(entry->d_name, &all[count])) count++;
	}
	if (proc) closedir(proc);
	mark_family(all, count, root);
	*ret = all;
	return count;
}

static bool read_about(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	return fd_read_file(AT_FDCWD, path, text, size) > 0;
}

static void read_memory(struct program_memory *p)
{
	char text[4096];

	if (!read_about(p->pid, "status", text, sizeof text)) return;
	p->rss_kib = line_kib(text, "VmRSS");
	p->peak_kib = line_kib(text, "VmHWM");
}

size_t memory_programs(pid_t root, const char *name, struct program_memory *ret, size_t max)
{
	auto_free struct process *all = NULL;
	size_t found = 0, count = read_family(root, &all);

	for (size_t i = 0; i < count && found < max; i++) {
		if (!all[i].ours || strcmp(all[i].name, name) != 0) continue;
		ret[found] = (struct program_memory){.pid = all[i].pid};
		memcpy(ret[found].name, all[i].name, sizeof ret[found].name);
		read_memory(&ret[found++]);
	}
	return found;
}

double memory_family_kib(pid_t root)
{
	auto_free struct process *all = NULL;
	size_t count = read_family(root, &all);
	char text[4096];
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (!all[i].ours || !read_about(all[i].pid, "status", text, sizeof text)) continue;
		sum += line_kib(text, "VmPTE") + line_kib(text, "Threads") * KERNEL_STACK_KIB;
		/* What agents still share with the one they are clones of is there once. */
		if (!read_about(all[i].pid, "smaps_rollup", text, sizeof text)) continue;
		sum += line_kib(text, "Pss_Anon") + line_kib(text, "Pss_Shmem");
	}
	return sum;
}

void memory_reset_peaks(const struct program_memory *programs, size_t count)
{
	char path[64];

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof path, "/proc/%d/clear_refs", programs[i].pid);
		(void)fd_write_file(AT_FDCWD, path, "5");
	}
}

double memory_host_kib(const char *const *names)
{
	char text[8192];
	double sum = 0;

	if (fd_read_file(AT_FDCWD, "/proc/meminfo", text, sizeof text) <= 0) return 0;
	for (; *names; names++)
		sum += line_kib(text, *names);
	return sum;
}
