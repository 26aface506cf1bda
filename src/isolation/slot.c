/*
 * slot.c - theory of operation.
 *
 * A user namespace needs a process to be born with, and its maps are written from outside. The process here
 * is a helper that shares our memory and descriptors (nothing to copy), does nothing, and is killed as soon
 * as the namespace is held by a descriptor. It has no exit signal, so that neither SIGCHLD nor a wait for
 * "any child" elsewhere in this program ever notices it, and all signals are blocked, so that no handler of
 * ours runs in it. It dies with the thread that made it: sharing the descriptors, it would otherwise hold
 * every socket and lock of a killed program for ever.
 *
 * A network namespace is made by moving this one thread into a new one and back. /proc/sys/net shows the
 * namespace of the thread that opens it.
 */
#include "isolation/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/program.h"

#define HOME_TRIES 3

/* ---- the user namespace ---- */

#define HELPER_STACK 16384

static int helper_main(void *parent)
{
	(void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* The parent may have died before that. */
	if (syscall(SYS_getppid) != (long)(intptr_t)parent) (void)syscall(SYS_exit, 1);
	/* Not pause(): as a cancellation point it would write into the thread state that we share. */
	for (;;)
		(void)syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	return 0;
}

static int id_map_write(pid_t pid, const char *file, uint32_t base_id, struct err *e)
{
	char path[64], map[64];
	int r;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	(void)snprintf(map, sizeof map, "0 %u %u\n", base_id, SLOT_IDS);
	r = fd_write_file(AT_FDCWD, path, map);
	return r < 0 ? err_set(e, r, "write the %s of a user namespace", file) : 0;
}

static int helper_userns_open(pid_t pid, uint32_t base_id, int *ret_fd, struct err *e)
{
	char path[64];
	int fd, r;

	r = id_map_write(pid, "uid_map", base_id, e);
	if (r == 0) r = id_map_write(pid, "gid_map", base_id, e);
	if (r < 0) return r;
	(void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return err_set(e, -errno, "open a user namespace");
	*ret_fd = fd;
	return 0;
}

static pid_t helper_start(void *stack_end)
{
	sigset_t all, before;
	pid_t pid;
	int saved;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(helper_main, stack_end, CLONE_NEWUSER | CLONE_VM | CLONE_FILES,
		    (void *)(intptr_t)getpid());
	saved = errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

static int userns_make(uint32_t base_id, int *ret_fd, struct err *e)
{
	_Alignas(16) char stack[HELPER_STACK];
	pid_t pid = helper_start(stack + sizeof stack);
	int r;

	if (pid < 0) return err_set(e, -errno, "make a user namespace");
	r = helper_userns_open(pid, base_id, ret_fd, e);
	(void)program_signal(pid, SIGKILL);
	/* It lives on our stack: we may not return before it is gone. */
	while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR) {
	}
	return r;
}

/* ---- the network namespace ---- */

static int loopback_raise(struct err *e)
{
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		return err_set(e, -errno, "raise the loopback interface");
	return 0;
}

/* The sandbox has no power over its network namespace, so what its root expects is allowed to everybody in
 * it. */
static int network_allow(uint32_t base_id, struct err *e)
{
	char groups[32];
	int r;

	(void)snprintf(groups, sizeof groups, "%u %u", base_id, base_id + SLOT_IDS - 1);
	r = fd_write_file(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	if (r < 0) return err_set(e, r, "allow low ports");
	r = fd_write_file(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", groups);
	if (r < 0) return err_set(e, r, "allow ping");
	return 0;
}

static int netns_furnish(uint32_t base_id, int *ret_fd, struct err *e)
{
	int fd, r;

	r = loopback_raise(e);
	if (r == 0) r = network_allow(base_id, e);
	if (r < 0) return r;
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0) return err_set(e, -errno, "open the new network namespace");
	*ret_fd = fd;
	return 0;
}

/* A thread of the keeper that stays in a stranger's network would do its later work there. */
static void come_home(int netns_fd)
{
	for (int i = 0; i < HOME_TRIES; i++)
		if (setns(netns_fd, CLONE_NEWNET) == 0) return;
	log_event(LOG_ERROR, "stranded", "why", strerror(errno), "where", "in a sandbox's network", NULL);
	abort();
}

static int netns_make(uint32_t base_id, int *ret_fd, struct err *e)
{
	auto_close int home_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int r;

	if (home_fd < 0) return err_set(e, -errno, "open our own network namespace");
	if (unshare(CLONE_NEWNET) < 0) return err_set(e, -errno, "make a network namespace");
	r = netns_furnish(base_id, ret_fd, e);
	come_home(home_fd);
	return r;
}

/* ---- the trees ---- */

static int tree_open(int dir_fd, int userns_fd, uint64_t attributes, int *ret_fd, struct err *e)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attributes,
		.userns_fd = (uint64_t)userns_fd,
		.propagation = MS_PRIVATE,
	};
	auto_close int fd = open_tree(dir_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (fd < 0) return err_set(e, -errno, "open a directory as a tree");
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
		return err_set(e, -errno,
			       "map the owners of a tree (does its file system support idmapped mounts?)");
	*ret_fd = take_fd(&fd);
	return 0;
}

int data_tree_open(int dir_fd, int userns_fd, int *ret_tree_fd, struct err *e)
{
	return tree_open(dir_fd, userns_fd, 0, ret_tree_fd, e);
}

static int image_open(const struct image *image, struct slot_kit *kit, struct err *e)
{
	int r = tree_open(image->root_fd, kit->userns_fd, MOUNT_ATTR_RDONLY, &kit->root_tree_fd, e);

	if (r == 0 && image->usr_fd >= 0)
		r = tree_open(image->usr_fd, kit->userns_fd, MOUNT_ATTR_RDONLY, &kit->usr_tree_fd, e);
	return r;
}

/* ---- all of it ---- */

int slot_kit_make(uint32_t base_id, const struct image *image, struct slot_kit *ret, struct err *e)
{
	struct slot_kit kit = SLOT_KIT_EMPTY;
	int r;

	kit.base_id = base_id;
	r = userns_make(base_id, &kit.userns_fd, e);
	if (r == 0) r = netns_make(base_id, &kit.netns_fd, e);
	if (r == 0) r = image_open(image, &kit, e);
	if (r < 0) {
		slot_kit_done(&kit);
		return r;
	}
	*ret = kit;
	return 0;
}

void slot_kit_done(struct slot_kit *kit)
{
	kit->userns_fd = fd_close(kit->userns_fd);
	kit->netns_fd = fd_close(kit->netns_fd);
	kit->root_tree_fd = fd_close(kit->root_tree_fd);
	kit->usr_tree_fd = fd_close(kit->usr_tree_fd);
}
