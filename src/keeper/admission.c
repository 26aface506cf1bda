#include "keeper/admission.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "base/fd.h"
#include "base/mem.h"

#define LOOK_AGAIN_MS    200
#define INODES_FREE      2048 /* a sandbox's tree begins with a handful */
#define DESCRIPTORS_FREE 256  /* of ours: one sandbox holds about ten while it is made */

static uint64_t number_in(const char *path, const char *after)
{
	char text[4096];
	ssize_t n = fd_read_file(AT_FDCWD, path, text, sizeof text);
	const char *at = n < 0 ? NULL : after ? strstr(text, after) : text;

	return at ? strtoull(at + (after ? strlen(after) : 0), NULL, 10) : UINT64_MAX;
}

static uint64_t look_at_memory(void)
{
	uint64_t kib = number_in("/proc/meminfo", "MemAvailable:");

	return kib == UINT64_MAX ? kib : kib << 10;
}

/* /proc/loadavg: "0.10 0.20 0.30 1/234 5678": running, and all there are. */
static uint64_t look_at_processes(void)
{
	uint64_t all = number_in("/proc/loadavg", "/");
	uint64_t pid_max = number_in("/proc/sys/kernel/pid_max", NULL);
	uint64_t threads_max = number_in("/proc/sys/kernel/threads-max", NULL);
	uint64_t most = MIN(pid_max, threads_max);

	if (all == UINT64_MAX || most == UINT64_MAX) return UINT64_MAX;
	return all < most ? most - all : 0;
}

/* The lowest free number tells how many are in use, for they are given out from below. */
static uint64_t look_at_descriptors(int any_fd)
{
	int lowest = fcntl(any_fd, F_DUPFD_CLOEXEC, 0);
	struct rlimit limit;

	if (lowest < 0) return 0;
	fd_close(lowest);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return UINT64_MAX;
	return limit.rlim_cur > (rlim_t)lowest ? limit.rlim_cur - (rlim_t)lowest : 0;
}

static void look(struct admission *a)
{
	struct statvfs st;

	a->room = (struct room){
		.memory_bytes = look_at_memory(),
		.disk_bytes = UINT64_MAX,
		.inodes = UINT64_MAX,
		.processes = look_at_processes(),
		.descriptors = look_at_descriptors(a->dir_fd),
	};
	if (fstatvfs(a->dir_fd, &st) < 0) return;
	a->room.disk_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	/* Some file systems have no fixed number of inodes and say 0 of 0. */
	if (st.f_files) a->room.inodes = st.f_favail;
}

bool room_is_enough(const struct room *room, const struct reserves *reserves, char *text, size_t size)
{
	if (reserves->memory_bytes && room->memory_bytes < reserves->memory_bytes) {
		(void)snprintf(text, size,
			       "the host is short of memory (%" PRIu64
			       " MiB available, memory-reserve is %" PRIu64 " MiB)",
			       room->memory_bytes >> 20, reserves->memory_bytes >> 20);
		return false;
	}
	if (reserves->disk_bytes && room->disk_bytes < reserves->disk_bytes) {
		(void)snprintf(text, size,
			       "the state directory's disk is nearly full (%" PRIu64
			       " MiB free, disk-reserve is %" PRIu64 " MiB)",
			       room->disk_bytes >> 20, reserves->disk_bytes >> 20);
		return false;
	}
	if (reserves->disk_bytes && room->inodes < INODES_FREE) {
		(void)snprintf(text, size,
			       "the state directory's disk is nearly out of inodes (%" PRIu64 " free)",
			       room->inodes);
		return false;
	}
	if (reserves->processes && room->processes < reserves->processes) {
		(void)snprintf(text, size,
			       "the host is short of processes (%" PRIu64
			       " more fit into kernel.pid_max, process-reserve "
			       "is %u)",
			       room->processes, reserves->processes);
		return false;
	}
	if (room->descriptors < DESCRIPTORS_FREE) {
		(void)snprintf(text, size,
			       "the server is short of file descriptors (%" PRIu64 " more): raise its limit",
			       room->descriptors);
		return false;
	}
	return true;
}

bool admission_allows(struct admission *a, uint64_t now_ms, char *text, size_t size)
{
	if (!a->seen_ms || now_ms - a->seen_ms >= LOOK_AGAIN_MS) {
		look(a);
		a->seen_ms = now_ms;
	}
	return room_is_enough(&a->room, &a->reserves, text, size);
}
