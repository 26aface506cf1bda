/* memory.h - what /proc says about memory: of the server's programs, and of the host. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define PROGRAMS_MAX 4096

struct program_memory {
	pid_t pid;
	char name[16];
	double rss_kib;  /* resident now */
	double peak_kib; /* most resident since the last memory_reset_peaks() */
};

/* The programs called NAME below the process ROOT, at most MAX; how many. */
size_t memory_programs(pid_t root, const char *name, struct program_memory *ret, size_t max);

/* Makes the kernel forget the peaks of these programs (needs root; without it peaks are since their start).
 */
void memory_reset_peaks(const struct program_memory *programs, size_t count);

/*
 * What ROOT and everything below it have for themselves, in KiB: anonymous and shared memory, page tables,
 * kernel stacks.
 */
double memory_family_kib(pid_t root);

/* The sum of the named lines ("Slab", ...) of /proc/meminfo, in KiB. NAMES ends with NULL. */
double memory_host_kib(const char *const *names);
