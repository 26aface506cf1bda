#include "agent/limits.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/message.h"

static struct {
	unsigned version;
	int fds[LIMITS_FDS];
	uint64_t memory_bytes;
	uint32_t pids, cpu_milli;
} limits = {.fds = {[0 ... LIMITS_FDS - 1] = -1}};

void limits_set(const struct msg_limits *m)
{
	limits.memory_bytes = m->memory_bytes;
	limits.pids = m->pids;
	limits.cpu_milli = m->cpu_milli;
}

/* ---- the cgroups ---- */

/* PRESENT as in `limits`. */
static void take_fds(uint32_t present, int *fds, size_t fd_count)
{
	size_t used = 0;

	for (unsigned i = 0; i < LIMITS_FDS && used < fd_count; i++)
		if (!present || (present & (1u << i))) limits.fds[i] = take_fd(&fds[used++]);
}

void limits_hold(const struct msg_limits *m, int *fds, size_t fd_count)
{
	limits.version = m->cgroup_version;
	take_fds(m->present, fds, fd_count);
}

void limits_let_go(void)
{
	for (size_t i = 0; i < LIMITS_FDS; i++)
		limits.fds[i] = fd_close(limits.fds[i]);
}

bool limits_held(void)
{
	return limits.fds[LIMITS_PIDS_DIR] >= 0;
}

int limits_dir(void)
{
	return limits.fds[LIMITS_PIDS_DIR];
}

const char *limits_entry(void)
{
	return limits.version == 2 ? "cgroup.procs" : "tasks";
}

size_t limits_attach_order(int own, int attach_fds[LIMITS_ATTACH_MAX])
{
	size_t count = 0;

	/*
	 * v1: three hierarchies, the leaf in that of pids. v2: one; the way into it from where we live leads
	 * through a file that the keeper opened (if it is needed there), and from there on into our leaf.
	 */
	if (limits.version != 2) attach_fds[count++] = own;
	if (limits.fds[LIMITS_MEMORY_PROCS] >= 0) attach_fds[count++] = limits.fds[LIMITS_MEMORY_PROCS];
	if (limits.version == 2) attach_fds[count++] = own;
	else if (limits.fds[LIMITS_CPU_PROCS] >= 0) attach_fds[count++] = limits.fds[LIMITS_CPU_PROCS];
	return count;
}

/* ---- the limits, and what the kernel counts ---- */

uint64_t limits_memory(void)
{
	return limits.memory_bytes;
}

uint32_t limits_pids(void)
{
	return limits.pids;
}

uint32_t limits_cpu_milli(void)
{
	return limits.cpu_milli;
}

uint64_t limits_number(const char *text, const char *key)
{
	size_t len = key ? strlen(key) : 0;
	uint64_t number = 0;

	while (key && (strncmp(text, key, len) != 0 || text[len] != ' ')) {
		text = strchr(text, '\n');
		if (!text) return 0;
		text++;
	}
	for (text += len + (key ? 1 : 0); *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	return number;
}

uint64_t limits_count(unsigned which, const char *key)
{
	char text[2048];
	ssize_t n = limits.fds[which] < 0 ? -1 : pread(limits.fds[which], text, sizeof text - 1, 0);

	if (n <= 0) return 0;
	text[n] = '\0';
	return limits_number(text, key);
}

uint64_t limits_processes(void)
{
	char text[32];

	return fd_read_file(limits_dir(), "pids.current", text, sizeof text) > 0 ? limits_number(text, NULL)
										 : 0;
}

uint64_t limits_oom_kills(void)
{
	return limits_count(LIMITS_MEMORY_EVENTS, "oom_kill");
}

uint64_t limits_forks_refused(void)
{
	return limits_count(LIMITS_PIDS_EVENTS, "max");
}
