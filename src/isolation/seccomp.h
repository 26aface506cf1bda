/*
 * seccomp.h - our system call filters: built once as a raw range tree from a readable table (syscalls.def),
 * loaded many times with seccomp(2). (libseccomp takes 1 ms a load; the tree 0.1.)
 */
#pragma once

#include <linux/filter.h>

struct err;

/*
 * The filter of everything inside a sandbox, the agent included. The program is static memory, shared by all
 * clones. Never fails after the build checks of the unit suite.
 */
const struct sock_fprog *seccomp_sandbox_filter(void);

/* The front's own: an allow list of what an HTTP server with a thread pool needs; no exec, no new sockets, no
 * opens for writing. */
const struct sock_fprog *seccomp_front_filter(void);

/* Sets nothing else (no_new_privs is the caller's). 0 or -errno. */
int seccomp_load(const struct sock_fprog *filter, struct err *e);
