/*
 * zygote.c - the program tombolo-agent: started once by the keeper, without environment, it clones parked
 * agents.
 *
 * Theory of operation: descriptor 3 is the keeper's control socket, 4 the way home (below), 5 the program
 * that makes archives. For each `spawn` we clone a child with CLONE_PARENT (so it is the keeper's child) into
 * new mount, pid, ipc, uts and cgroup namespaces, and answer with its pid. The child keeps nothing but its
 * end of the bond and waits there (parked.c). We end when the keeper does. What we touch is what each clone
 * has to copy: little memory, few descriptors, no stdio.
 *
 * A cgroup namespace is rooted where its first process is born. We live in the group for agents in every
 * hierarchy, so that none of them shows a path of the host, and in v1's cpu hierarchy each child goes home to
 * the root (isolation/cgroup.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/archive.h"
#include "agent/parked.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/program.h"
#include "isolation/contain.h"
#include "isolation/seccomp.h"
#include "wire/link.h"

#define CONTROL_FD 3
#define HOME_FD    4 /* cgroups_agents_home() */
#define ARCHIVE_FD 5 /* the program tombolo-tar; may be missing */

static struct link *control;
static unsigned long cgroup_ns; /* CLONE_NEWCGROUP, or 0: cgroups_namespace_fits() denied it */

/* The pid in the keeper's eyes, or -errno. In the child it does not return. */
static int clone_parked(int bond_fd)
{
	long pid = syscall(SYS_clone,
			   CLONE_PARENT | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
				   cgroup_ns | SIGCHLD,
			   NULL, NULL, NULL, NULL);

	if (pid < 0) return -errno;
	if (pid > 0) return (int)pid;
	control = link_free(control);
	(void)fd_write_all(HOME_FD, "0", 1); /* else it is slow beside busy sandboxes, and right */
	(void)close(HOME_FD);
	parked_run(bond_fd);
}

static int on_control(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct msg_spawned answer;
	struct frame f;

	(void)ctx;
	if (frame_reader_next(&reader, &f) != 1) return -EPROTO;
	if (f.type != MSG_spawn) return 0;
	answer.pid = fd_count == 1 ? clone_parked(take_fd(&fds[0])) : -EBADF;
	return LINK_SEND(control, 0, spawned, &answer, NULL, 0);
}

static _Noreturn void fail(const struct err *e)
{
	(void)fd_write_all(STDERR_FILENO, e->text, strlen(e->text));
	(void)fd_write_all(STDERR_FILENO, "\n", 1);
	_exit(1);
}

/* Whoever started the keeper may ignore signals; what runs in a sandbox shall not inherit that. */
static void default_signals(void)
{
	sigset_t none;

	program_default_signals();
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* 0 to 2 stay taken for ever, so that nothing of ours ever lies there. From here on nobody hears us. */
static int occupy_stdio(struct err *e)
{
	int fd = open("/dev/null", O_RDWR);

	if (fd < 0) return err_set(e, -errno, "open /dev/null");
	for (int i = 0; i < 3; i++) {
		if (fd != i && dup2(fd, i) < 0) return err_set(e, -errno, "occupy descriptor %d", i);
	}
	if (fd > 2) (void)close(fd);
	return 0;
}

static int prepare(struct err *e)
{
	int r;

	default_signals();
	(void)prctl(PR_SET_NAME, "tombolo-zygote");
	if (syscall(SYS_close_range, ARCHIVE_FD + 1, ~0u, 0) < 0)
		return err_set(e, -errno, "close descriptors");
	if (fd_set_cloexec(ARCHIVE_FD, true) == 0) archive_init(ARCHIVE_FD);
	r = fd_set_cloexec(CONTROL_FD, true);
	if (r < 0) return err_set(e, r, "control socket (descriptor %d)", CONTROL_FD);
	r = contain_prepare(e);
	if (r < 0) return r;
	(void)seccomp_sandbox_filter(); /* built here, so that all clones share it */
	return occupy_stdio(e);
}

static void serve(void)
{
	struct pollfd p = {.fd = CONTROL_FD, .events = POLLIN};

	control = link_new(CONTROL_FD);
	while (link_read(control, 1, on_control, NULL) == 0) {
		if (link_flush(control) < 0) return;
		p.events = link_wants_out(control) ? POLLIN | POLLOUT : POLLIN;
		(void)poll(&p, 1, -1);
	}
}

int main(int argc, char **argv)
{
	struct err e = ERR_NONE;

	if (argc < 2 || strcmp(argv[1], "zygote") != 0) {
		err_say(&e, -EINVAL, "tombolo-agent is started by tombolo-keeper and is of no use by itself");
		fail(&e);
	}
	if (argc > 2 && strcmp(argv[2], "cgroup-ns") == 0) cgroup_ns = CLONE_NEWCGROUP;
	if (prepare(&e) < 0) fail(&e);
	serve();
	return 0;
}
