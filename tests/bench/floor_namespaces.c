#include "floor_namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "bench.h"
#include "floor_spawn.h"

/* The seventh, CLONE_NEWUSER, comes after the mounts: a user namespace may not use the host's root as a
 * layer. */
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

struct namespace_floor {
	pid_t helper;
	int fd;
};

struct answer {
	double exec_us, all_us;
	struct err err;
};

/*
 * What the first process inside says, twice: that its root stands and its user namespace waits for id maps,
 * and that the program has run.
 */
struct outcome {
	struct err err;
};

static int enter_root(const char *root, const char *layers, struct err *e)
{
	char proc[4200];

	if (mount("overlay", root, "overlay", 0, layers) < 0) return err_set(e, -errno, "mount an overlay");
	snprintf(proc, sizeof proc, "%s/proc", root);
	if (mount("proc", proc, "proc", 0, NULL) < 0) return err_set(e, -errno, "mount /proc");
	if (chdir(root) < 0) return err_set(e, -errno, "enter the new root");
	if (syscall(SYS_pivot_root, ".", ".") < 0) return err_set(e, -errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0) return err_set(e, -errno, "leave the old root");
	return 0;
}

static void tell(int fd, const struct outcome *outcome)
{
	if (fd_write_all(fd, outcome, sizeof *outcome) < 0 || outcome->err.code) _exit(1);
}

/* Process 1 of the namespaces: builds its root, waits for its id maps, runs PATH, and stays until killed. */
static _Noreturn void inside(int fd, const char *dir, const char *path)
{
	struct outcome outcome = {0};
	char root[4096], layers[16384], go;

	snprintf(root, sizeof root, "%s/root", dir);
	snprintf(layers, sizeof layers, "lowerdir=/,upperdir=%s/upper,workdir=%s/work", dir, dir);
	int r = enter_root(root, layers, &outcome.err);
	if (r == 0 && unshare(CLONE_NEWUSER) < 0) err_set(&outcome.err, -errno, "unshare the user namespace");
	tell(fd, &outcome);
	if (read(fd, &go, 1) != 1) _exit(1);
	(void)spawn_and_wait(path, &outcome.err);
	tell(fd, &outcome);
	for (;;)
		pause();
}

static int write_maps(pid_t pid, struct err *e)
{
	char file[64];

	snprintf(file, sizeof file, "/proc/%d/uid_map", pid);
	int r = fd_write_file(AT_FDCWD, file, "0 0 65536");
	if (r < 0) return err_set(e, r, "write a uid map");
	snprintf(file, sizeof file, "/proc/%d/gid_map", pid);
	r = fd_write_file(AT_FDCWD, file, "0 0 65536");
	if (r < 0) return err_set(e, r, "write a gid map");
	return 0;
}

static int hear(int fd, struct err *e)
{
	struct outcome outcome;

	if (recv(fd, &outcome, sizeof outcome, MSG_WAITALL) != sizeof outcome)
		return err_say(e, -EPROTO, "the first process died");
	if (outcome.err.code) *e = outcome.err;
	return outcome.err.code;
}

static int until_run(pid_t pid, int fd, struct err *e)
{
	int r = hear(fd, e);

	if (r == 0) r = write_maps(pid, e);
	if (r < 0) return r;
	r = fd_write_all(fd, "", 1);
	if (r < 0) return err_set(e, r, "start the first process");
	return hear(fd, e);
}

static void make_or_remove(const char *dir, bool make)
{
	static const char *const names[] = {"root", "upper", "work/work", "work/index", "work"};
	char path[4200];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		if (!make) (void)rmdir(path);
		else if (i != 2 && i != 3) (void)mkdir(path, 0755);
	}
}

static int run_once(const char *dir, const char *path, struct answer *a)
{
	struct clone_args args = {.flags = NAMESPACES, .exit_signal = SIGCHLD};
	int pair[2], status;

	double began = now_us();
	make_or_remove(dir, true);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(&a->err, -errno, "make a socket");
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0) {
		close(pair[0]);
		inside(pair[1], dir, path);
	}
	close(pair[1]);
	int r = pid < 0 ? err_set(&a->err, -errno, "clone into seven namespaces") : 0;
	if (r == 0) r = until_run(pid, pair[0], &a->err);
	a->exec_us = now_us() - began;
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
		}
	}
	a->all_us = now_us() - began;
	close(pair[0]);
	make_or_remove(dir, false);
	return r;
}

/* Until the bench closes its end: one path in, one answer out. */
static _Noreturn void helper_main(int fd, const char *dir)
{
	char path[4096];
	struct err private = ERR_NONE;
	ssize_t n;

	/* Once, and not without: no mount of a child may ever reach the host. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		err_set(&private, -errno, "make a private mount namespace");
	while ((n = recv(fd, path, sizeof path - 1, 0)) > 0) {
		struct answer a = {.err = private};
		path[n] = '\0';
		if (private.code == 0) (void)run_once(dir, path, &a);
		if (send(fd, &a, sizeof a, MSG_NOSIGNAL) < 0) break;
	}
	_exit(0);
}

int namespace_floor_new(const char *dir, struct namespace_floor **ret, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "make a socket");
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		helper_main(pair[1], dir);
	}
	close(pair[1]);
	if (pid < 0) {
		int r = err_set(e, -errno, "fork");
		close(pair[0]);
		return r;
	}
	*ret = mem_new(sizeof **ret);
	**ret = (struct namespace_floor){.helper = pid, .fd = pair[0]};
	return 0;
}

struct namespace_floor *namespace_floor_free(struct namespace_floor *f)
{
	if (!f) return NULL;
	close(f->fd);
	while (waitpid(f->helper, NULL, 0) < 0 && errno == EINTR) {
	}
	free(f);
	return NULL;
}

int namespace_floor_run(struct namespace_floor *f, const char *path, double *ret_exec_us, double *ret_all_us,
			struct err *e)
{
	struct answer a;

	if (send(f->fd, path, strlen(path), MSG_NOSIGNAL) < 0)
		return err_set(e, -errno, "ask the namespace helper");
	if (recv(f->fd, &a, sizeof a, 0) != sizeof a) return err_say(e, -EPROTO, "the namespace helper died");
	if (a.err.code) {
		*e = a.err;
		return err_add(e, "namespace floor");
	}
	*ret_exec_us = a.exec_us;
	*ret_all_us = a.all_us;
	return 0;
}
