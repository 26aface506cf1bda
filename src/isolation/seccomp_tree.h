/* seccomp_tree.h - from a verdict for each system call number to a filter program. Private to the room. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

/* More numbers than any architecture has; those from here on are UNKNOWN, x32's among them. */
#define SYSCALL_NUMBERS 512u

/* What syscalls.def says, in one byte a number. */
enum verdict {
	VERDICT_UNKNOWN = 0, /* not in the table: ENOSYS */
	VERDICT_ALLOW,
	VERDICT_EPERM,
	VERDICT_ENOSYS,
	VERDICT_NOTHING,
	VERDICT_KILL,
	/* judged by their arguments; see seccomp_tree.c */
	VERDICT_CLONE,
	VERDICT_UNSHARE,
	VERDICT_IOCTL,
	VERDICT_SOCKET,
	VERDICT_UNIX_SOCKET,
	VERDICT_PERSONALITY,
	VERDICT_THREAD,
	VERDICT_READ_ONLY_OPEN,
	VERDICT_READ_ONLY_OPENAT,
	VERDICT_QUIET_IOCTL,
	VERDICT_QUIET_PRCTL,
};

#define SECCOMP_PROGRAM_MAX 512

struct seccomp_program {
	struct sock_filter code[SECCOMP_PROGRAM_MAX];
	struct sock_fprog prog; /* points to code */
};

/* Asserts that the program fits; the unit suite builds each one. */
void seccomp_tree_build(const uint8_t verdicts[SYSCALL_NUMBERS], struct seccomp_program *ret);
