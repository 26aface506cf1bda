/*
 * machine.h - the files that tell a sandbox of its machine: its own memory, processors and time instead of
 * the host's.
 *
 * Theory of operation: programs ask /proc how much there is, and /sys/fs/cgroup what they may use. A FUSE
 * server would answer at the cost of a process a sandbox; we bind plain files over those of /proc, and let
 * the agent rewrite them (agent/view.c). The files lie in the zygote's template, one tmpfs for all sandboxes,
 * and lose their names at once: they are gone with the mounts that show them. Their owner is the host's root,
 * whom nobody inside is, so only the agent can write them, through descriptors that it opened before it
 * became somebody.
 *
 * All of it happens while an agent is parked, so that nobody waits for it.
 */
#pragma once

#include <stddef.h>

struct err;

enum machine_file {
	MACHINE_MEMINFO,
	MACHINE_CPUINFO,
	MACHINE_STAT,
	MACHINE_UPTIME,
	MACHINE_LOADAVG,
	MACHINE_SWAPS,
	MACHINE_MEMORY_MAX, /* of /sys/fs/cgroup, as in cgroup v2 */
	MACHINE_CPU_MAX,
	MACHINE_PIDS_MAX,
	MACHINE_FILES
};

#define MACHINE_CGROUP_DIR "/k" /* in the template: what goes to /sys/fs/cgroup */

/* In the zygote, with the host's /proc in sight: remembers what one processor is called. */
void machine_remember(void);

/* In the template, which is the working directory and writable. */
int machine_template_make(struct err *e);

/* In a parked agent: makes its files, shows them in PROC_DIR, a new /proc, and below MACHINE_CGROUP_DIR. */
int machine_park(const char *proc_dir, struct err *e);

/* The agent's descriptor; -1: there is no such file here. */
int machine_fd(enum machine_file file);

/* What /proc/cpuinfo of the host said of its first processor; "" when it said nothing. */
const char *machine_processor(void);
