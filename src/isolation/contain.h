/*
 * contain.h - the act of becoming a sandbox: runs in a parked agent, as real root, and ends without
 * privilege.
 *
 * The order ("order B": real root builds the tree, then drops) and its pitfalls are told in contain.c.
 * Nothing here allocates from the heap or uses stdio: the caller is a clone of the zygote that must stay
 * small.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct sock_fprog;

struct contain_spec {
	/* What it is called here: its domain name (the host name is always CONTAIN_HOST_NAME). */
	const char *run;
	uint32_t base_id; /* first of the 65,536 host ids of the slot */
	/* Borrowed descriptors; the caller closes them afterwards. */
	int userns_fd; /* the slot's prepared user namespace */
	int netns_fd;  /* a private network namespace with lo up */
	/* Detached trees are used up by a success: they are then attached, and only the descriptor is left to
	 * close. */
	int root_tree_fd; /* idmapped, read-only: the image's root directory (overlay's lower) */
	int usr_tree_fd;  /* idmapped, read-only: goes to /usr; -1 when the image has its own */
	int data_tree_fd; /* idmapped: a directory that holds upper/ and work/ */
	const struct sock_fprog *filter; /* loaded last; see seccomp.h */
};

/* One name for all, so that the image's one /etc/hosts can resolve it: much software insists on that. */
#define CONTAIN_HOST_NAME "sandbox"

/*
 * 0: this process is now uid 0 of the sandbox's user namespace, in all seven of its namespaces (mount, pid,
 * ipc, uts and cgroup come from the clone), with the kept capabilities only, not dumpable, no_new_privs,
 * under the filter; cwd is "/". Negative: E names the step; the process is half contained and must exit.
 *
 * The image's root must hold the mount points dev, proc and run/shm (and usr, when USR_TREE_FD is given).
 */
int contain(const struct contain_spec *spec, struct err *e);

/*
 * In a parked agent, once, before its kit comes: what depends on nothing but its pid namespace, which is
 * /proc with its masks and the machine's files (machine.h). contain() does it when nobody has.
 */
int contain_park(struct err *e);

/*
 * In the zygote, once, before the first clone: a private mount namespace whose root is a tiny tmpfs with the
 * mount points and the /dev template that contain() uses, and the resource limits that all sandboxes inherit.
 * Afterwards the host's tree is out of reach by path.
 */
int contain_prepare(struct err *e);
