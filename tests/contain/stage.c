#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/contain.h"
#include "isolation/image_host.h"
#include "isolation/seccomp.h"
#include "isolation/tree.h"

/* Far from what servers on this machine use; pids keep parallel runs apart. */
#define FIRST_BASE_ID (0x60000000u + (uint32_t)(getpid() & 0x3ff) * 16 * SLOT_IDS)

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

static unsigned now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned)((uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000);
}

/* ---- packets with descriptors ---- */

enum { KIT_USERNS, KIT_NETNS, KIT_ROOT, KIT_USR, KIT_DATA, KIT_FDS };

struct packet {
	uint32_t base_id, uid;
	int32_t result;
	uint32_t us;
	char text[STAGE_ARGS][160];
};

static void packet_send(int fd, const struct packet *p, const int *fds, unsigned fd_count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * KIT_FDS)];
	} control = {0};
	struct iovec io = {(void *)p, sizeof *p};
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};

	if (fd_count) {
		struct cmsghdr *c = &control.align;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		*c = (struct cmsghdr){CMSG_LEN(sizeof(int) * fd_count), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
	}
	if (sendmsg(fd, &m, MSG_NOSIGNAL) < 0) fail("stage: sendmsg: %m");
}

/* false at the end of the conversation. */
static bool packet_receive(int fd, struct packet *p, int fds[KIT_FDS])
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * KIT_FDS)];
	} control = {0};
	struct iovec io = {p, sizeof *p};
	struct msghdr m = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

	if (recvmsg(fd, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *p) return false;
	if (fds && m.msg_controllen)
		memcpy(fds, CMSG_DATA(&control.align), control.align.cmsg_len - CMSG_LEN(0));
	return true;
}

/* ---- the mini-agent: pid 1 ---- */

static void agent_exec(const struct packet *p, int out_fd)
{
	char *argv[STAGE_ARGS + 1],
		*envp[] = {(char *)"PATH=/usr/sbin:/usr/bin", (char *)"HOME=/workspace", NULL};
	unsigned n = 0;

	while (n < STAGE_ARGS && p->text[n][0])
		argv[n] = (char *)p->text[n], n++;
	argv[n] = NULL;
	if (dup2(out_fd, 1) < 0 || dup2(out_fd, 2) < 0) _exit(126);
	if (syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(p->uid, p->uid, p->uid) < 0) _exit(126);
	if (setresuid(p->uid, p->uid, p->uid) < 0 || chdir("/workspace") < 0) _exit(126);
	(void)execve(argv[0], argv, envp);
	_exit(127);
}

static int agent_run(const struct packet *p, int out_fd)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) agent_exec(p, out_fd);
	(void)close(out_fd);
	if (pid < 0) return -1;
	for (;;) {
		int one;
		pid_t ended = waitpid(-1, &one, 0); /* orphans of earlier programs too */

		if (ended == pid) return one;
		if (ended < 0 && errno != EINTR) return status;
	}
}

static void agent_main(int fd)
{
	struct packet p = {0};
	int kit[KIT_FDS] = {-1, -1, -1, -1, -1}, null_fd;
	struct err e = ERR_NONE;
	unsigned begin;

	if (!packet_receive(fd, &p, kit)) _exit(0);
	begin = now_us();
	p.result = contain(&(struct contain_spec){.run = p.text[0],
						  .base_id = p.base_id,
						  .userns_fd = kit[KIT_USERNS],
						  .netns_fd = kit[KIT_NETNS],
						  .root_tree_fd = kit[KIT_ROOT],
						  .usr_tree_fd = kit[KIT_USR],
						  .data_tree_fd = kit[KIT_DATA],
						  .filter = seccomp_sandbox_filter()},
			   &e);
	p.us = now_us() - begin;
	(void)snprintf(p.text[0], sizeof p.text[0], "%.150s", e.text);
	for (unsigned i = 0; i < KIT_FDS; i++)
		(void)close(kit[i]);
	null_fd = p.result == 0 ? open("/dev/null", O_RDWR) : -1;
	if (null_fd >= 0) (void)dup2(null_fd, 0), (void)dup2(null_fd, 2), (void)close(null_fd);
	packet_send(fd, &p, NULL, 0);
	while (p.result == 0 && packet_receive(fd, &p, kit)) {
		p.result = agent_run(&p, kit[0]);
		p.us = 0;
		packet_send(fd, &(struct packet){.result = 0, .uid = (uint32_t)p.result}, NULL, 0);
		p.result = 0;
	}
	_exit(0);
}

/* ---- the zygote ---- */

/* The agent is our parent's child, and without exec: as in the real thing. */
static pid_t agent_clone(int agent_fd, int zygote_fd)
{
	const unsigned long flags =
		CLONE_PARENT | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		(void)close(zygote_fd);
		agent_main(agent_fd);
	}
	return pid;
}

static void zygote_main(int fd)
{
	struct err e = ERR_NONE;
	struct packet p = {0};
	int agent_fd[KIT_FDS];

	p.result = contain_prepare(&e);
	(void)snprintf(p.text[0], sizeof p.text[0], "%.150s", e.text);
	(void)seccomp_sandbox_filter();
	packet_send(fd, &p, NULL, 0);
	while (p.result == 0 && packet_receive(fd, &p, agent_fd)) {
		unsigned begin = now_us();
		pid_t pid = agent_clone(agent_fd[0], fd);

		(void)close(agent_fd[0]);
		packet_send(fd, &(struct packet){.uid = (uint32_t)pid, .us = now_us() - begin}, NULL, 0);
	}
	_exit(0);
}

void stage_open(struct stage *s)
{
	struct err e = ERR_NONE;
	struct packet p;
	char images[96];
	int pair[2];

	(void)snprintf(s->state_dir, sizeof s->state_dir, "/tmp/tombolo-contain-XXXXXX");
	if (!mkdtemp(s->state_dir)) fail("stage: no temporary directory: %m");
	(void)snprintf(images, sizeof images, "%s/images", s->state_dir);
	if (image_host_open(images, &s->image, &e) < 0) fail("stage: %s", e.text);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) fail("stage: socketpair: %m");
	s->zygote_pid = fork();
	if (s->zygote_pid < 0) fail("stage: fork: %m");
	if (s->zygote_pid == 0) {
		(void)close(pair[0]);
		(void)close(s->image.root_fd);
		(void)close(s->image.usr_fd);
		zygote_main(pair[1]);
	}
	(void)close(pair[1]);
	s->zygote_fd = pair[0];
	if (!packet_receive(s->zygote_fd, &p, NULL) || p.result < 0) fail("stage: zygote: %s", p.text[0]);
}

void stage_close(struct stage *s)
{
	(void)close(s->zygote_fd);
	(void)waitpid(s->zygote_pid, NULL, 0);
	(void)close(s->image.root_fd);
	(void)close(s->image.usr_fd);
	if (tree_delete(s->state_dir) < 0) fail("stage: cannot remove '%s': %m", s->state_dir);
}

/* ---- the keeper's part of one sandbox ---- */

static void file_copy(const char *from, const char *to)
{
	auto_close int in = open(from, O_RDONLY | O_CLOEXEC);
	auto_close int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n;

	if (in < 0 || out < 0) fail("stage: copy '%s' to '%s': %m", from, to);
	do
		n = sendfile(out, in, NULL, 1 << 20);
	while (n > 0);
	if (n < 0) fail("stage: copy '%s': %m", from);
}

static void data_make(struct stage *s, unsigned slot, const char *file, char data_dir[128])
{
	static const char *const parts[] = {"", "/upper", "/work"};
	char path[256];

	(void)snprintf(data_dir, 128, "%s/data-%u", s->state_dir, slot);
	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		(void)snprintf(path, sizeof path, "%s%s", data_dir, parts[i]);
		if (mkdir(path, 0755) < 0) fail("stage: make '%s': %m", path);
	}
	(void)snprintf(path, sizeof path, "%s/upper/guest", data_dir);
	if (file) file_copy(file, path);
}

static void kit_make(struct stage *s, struct actor *a, int kit[KIT_FDS])
{
	struct slot_kit made = SLOT_KIT_EMPTY;
	struct err e = ERR_NONE;
	auto_close int data_fd = open(a->data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned begin = now_us();

	if (slot_kit_make(a->base_id, &s->image, &made, &e) < 0) fail("stage: kit: %s", e.text);
	a->kit_us = now_us() - begin;
	kit[KIT_USERNS] = made.userns_fd;
	kit[KIT_NETNS] = made.netns_fd;
	kit[KIT_ROOT] = made.root_tree_fd;
	kit[KIT_USR] = made.usr_tree_fd;
	if (data_tree_open(data_fd, made.userns_fd, &kit[KIT_DATA], &e) < 0) fail("stage: data: %s", e.text);
}

static void agent_start(struct stage *s, struct actor *a)
{
	struct packet p = {0};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) fail("stage: socketpair: %m");
	packet_send(s->zygote_fd, &p, &pair[1], 1);
	(void)close(pair[1]);
	if (!packet_receive(s->zygote_fd, &p, NULL) || (pid_t)p.uid <= 0)
		fail("stage: the zygote made no agent");
	a->pid = (pid_t)p.uid;
	a->clone_us = p.us;
	a->fd = pair[0];
}

void actor_make(struct stage *s, unsigned slot, const char *file, struct actor *ret)
{
	struct actor a = {.base_id = FIRST_BASE_ID + slot * SLOT_IDS};
	struct packet p = {.base_id = a.base_id};
	int kit[KIT_FDS];
	unsigned begin;

	data_make(s, slot, file, a.data_dir);
	kit_make(s, &a, kit);
	agent_start(s, &a);
	(void)snprintf(p.text[0], sizeof p.text[0], "stagesandbox%u", slot);
	begin = now_us();
	packet_send(a.fd, &p, kit, KIT_FDS);
	if (!packet_receive(a.fd, &p, NULL)) fail("stage: the agent died while it contained itself");
	if (p.result < 0) fail("stage: contain: %s", p.text[0]);
	a.bind_us = now_us() - begin;
	a.contain_us = p.us;
	for (unsigned i = 0; i < KIT_FDS; i++)
		(void)close(kit[i]);
	*ret = a;
}

void actor_end(struct actor *a)
{
	(void)kill(a->pid, SIGKILL);
	(void)waitpid(a->pid, NULL, 0);
	(void)close(a->fd);
}

void actor_forget(struct actor *a)
{
	if (tree_delete(a->data_dir) < 0) fail("stage: cannot remove '%s'", a->data_dir);
}

int actor_run(struct actor *a, uid_t uid, const char *const args[STAGE_ARGS], struct buf *out)
{
	struct packet p = {.uid = uid};
	int pipe_fds[2];
	ssize_t n;

	for (unsigned i = 0; i < STAGE_ARGS && args[i]; i++)
		(void)snprintf(p.text[i], sizeof p.text[i], "%s", args[i]);
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) fail("stage: pipe: %m");
	packet_send(a->fd, &p, &pipe_fds[1], 1);
	(void)close(pipe_fds[1]);
	do {
		char *room = buf_reserve(out, 4096);

		if (!room) fail("stage: a program says too much");
		n = read(pipe_fds[0], room, 4096);
		if (n > 0) buf_grew(out, (size_t)n);
	} while (n > 0);
	(void)close(pipe_fds[0]);
	if (!packet_receive(a->fd, &p, NULL)) fail("stage: pid 1 is gone");
	return (int)p.uid;
}
