/*
 * injector.c - runs a program tree in which one system call fails once.
 *
 *   injector --list
 *   injector --fail COMM CALL ERRNO N FD -- PROGRAM ARGS...
 *   injector --orders FD -- PROGRAM ARGS...
 *
 * The Nth CALL of any process whose name (/proc/PID/comm) is COMM is not made, but fails with ERRNO; we say
 * "fired" on FD, a socket, when it happens. With --orders all calls of calls.def are ours to refuse: each
 * line "fail COMM CALL ERRNO N" is answered by "ordered", counts from then on, and replaces the order before;
 * "count" begins a second phase of the counts that we report at the end, one line "COMM CALL PHASE COUNT"
 * each. SIGTERM and SIGINT go on to PROGRAM; we end when it and all it started have, with its status.
 *
 * Theory of operation: a seccomp filter that answers USER_NOTIF is inherited by all that is started below it
 * and survives every exec, change of user and namespace; the kernel asks the holder of the listener what to
 * do with each call. A filter belongs to a thread: a helper thread installs it and starts PROGRAM, while we,
 * unfiltered, answer. Not LD_PRELOAD, because the agent is static; not ptrace, because that slows every call,
 * and changes how signals, waits and clones of those behave whom we only watch.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define CALLS_MAX    128
#define PROGRAMS_MAX 64
#define COMM_SIZE    16
#define ORPHANS_MS   5000 /* what lives longer after its server was left behind */

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static const struct call {
	const char *name, *error_name;
	int number, error;
} calls[] = {
#define CALL(name, error) {#name, #error, SYS_##name, error},
#include "calls.def"
#undef CALL
};

enum phase { STARTING, SERVING, PHASES };

static const char *const phase_names[PHASES] = {"start", "serving"};

struct seen {
	char comm[COMM_SIZE];
	unsigned counts[PHASES][CALLS_MAX];
};

struct injector {
	char **argv;
	bool takes_orders;
	const struct call *fail;
	char comm[COMM_SIZE];
	unsigned long when; /* so many more; 0: none is to fail */
	enum phase phase;
	int talk_fd;
	char order[128]; /* as far as it has come */
	size_t order_len;

	int listener_fd, signal_fd;
	pid_t pid;
	int start_error; /* of the helper thread */
	bool ended;
	int status;
	struct seen seen[PROGRAMS_MAX];
	unsigned seen_count;
};

static _Noreturn void fail(const char *what, int code)
{
	(void)fprintf(stderr, "injector: %s: %s\n", what, strerror(code));
	_exit(125);
}

/* ---- below the filter ---- */

static bool is_first_of_its_number(size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (calls[j].number == calls[i].number) return false;
	return true;
}

/* The listener, or -errno. A jump is 8 bits wide, hence a return after each comparison. */
static int install_filter(const struct injector *j)
{
	struct sock_filter program[2 * CALLS_MAX + 2];
	struct sock_fprog filter = {.filter = program};
	unsigned short n = 0;
	long fd;

	program[n++] =
		(struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (j->takes_orders ? !is_first_of_its_number(i) : j->fail != &calls[i]) continue;
		program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							    (unsigned)calls[i].number, 0, 1);
		program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter.len = n;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
	return fd < 0 ? -errno : (int)fd;
}

/* Everything of this thread that follows the filter is answered by the main thread, so tell it first. */
static void *start_below_filter(void *ctx)
{
	struct injector *j = ctx;
	posix_spawnattr_t attr;
	sigset_t none;
	int fd = install_filter(j);

	if (fd < 0) {
		j->start_error = -fd;
		__atomic_store_n(&j->listener_fd, -2, __ATOMIC_SEQ_CST);
		return NULL;
	}
	__atomic_store_n(&j->listener_fd, fd, __ATOMIC_SEQ_CST);
	sigemptyset(&none);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	j->start_error = posix_spawn(&j->pid, j->argv[0], NULL, &attr, j->argv, environ);
	if (j->start_error) fail(j->argv[0], j->start_error);
	return NULL;
}

/* ---- above it ---- */

static struct seen *seen_of(struct injector *j, const char *comm)
{
	for (unsigned i = 0; i < j->seen_count; i++)
		if (strcmp(j->seen[i].comm, comm) == 0) return &j->seen[i];
	if (j->seen_count == PROGRAMS_MAX) return NULL;
	(void)snprintf(j->seen[j->seen_count].comm, COMM_SIZE, "%s", comm);
	return &j->seen[j->seen_count++];
}

static void comm_of(pid_t pid, char comm[COMM_SIZE])
{
	char path[32];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, comm, COMM_SIZE);
		(void)close(fd);
	}
	comm[n > 0 ? n - 1 : 0] = '\0'; /* in the place of the newline */
}

static void count(struct injector *j, const char *comm, int number)
{
	struct seen *s = seen_of(j, comm);

	for (size_t i = 0; s && i < ARRAY_LEN(calls); i++)
		s->counts[j->phase][i] += calls[i].number == number;
}

/* 0: let it be made. */
static int judge(struct injector *j, const char *comm, int number)
{
	if (j->takes_orders) count(j, comm, number);
	if (j->when == 0 || j->fail->number != number || strcmp(comm, j->comm) != 0 || --j->when > 0)
		return 0;
	(void)dprintf(j->talk_fd, "fired\n");
	return -j->fail->error;
}

static void answer_one(struct injector *j)
{
	struct seccomp_notif asked = {0};
	struct seccomp_notif_resp answer = {0};
	char comm[COMM_SIZE];
	int error;

	/* ENOENT: it was killed while it waited for us. */
	if (ioctl(j->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0) return;
	comm_of((pid_t)asked.pid, comm);
	answer.id = asked.id;
	error = judge(j, comm, asked.data.nr);
	/* brk() knows no errors, but gives an address that is too low: libraries would take -ENOMEM for a
	 * high one. */
	answer.error = asked.data.nr == SYS_brk ? 0 : error;
	answer.flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	(void)ioctl(j->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void reap(struct injector *j)
{
	int status;
	pid_t pid;

	/* It may have been quicker than the helper, who is about to learn its number. */
	while (__atomic_load_n(&j->pid, __ATOMIC_SEQ_CST) == 0)
		(void)sched_yield();
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != j->pid) continue;
		j->ended = true;
		j->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

static void on_signal(struct injector *j)
{
	struct signalfd_siginfo info;

	while (read(j->signal_fd, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGCHLD) reap(j);
		else if (j->pid > 0 && !j->ended) (void)kill(j->pid, (int)info.ssi_signo);
	}
}

static const struct call *find_call(const char *name, const char *error_name)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (strcmp(calls[i].name, name) == 0 && strcmp(calls[i].error_name, error_name) == 0)
			return &calls[i];
	return NULL;
}

static bool order(struct injector *j, const char *comm, const char *name, const char *error,
		  unsigned long when)
{
	j->fail = find_call(name, error);
	(void)snprintf(j->comm, sizeof j->comm, "%s", comm);
	j->when = when;
	return j->fail && when > 0;
}

static void take_order(struct injector *j, const char *line)
{
	char comm[COMM_SIZE], name[32], error[32];
	unsigned long when;

	if (strcmp(line, "count") == 0) j->phase = SERVING;
	else if (sscanf(line, "fail %15s %31s %31s %lu", comm, name, error, &when) != 4 ||
		 !order(j, comm, name, error, when))
		fail(line, EINVAL);
	(void)dprintf(j->talk_fd, "ordered\n");
}

/* False: who gives orders has gone. */
static bool on_talk(struct injector *j)
{
	ssize_t n =
		recv(j->talk_fd, j->order + j->order_len, sizeof j->order - 1 - j->order_len, MSG_DONTWAIT);
	char *end;

	if (n <= 0) return n < 0 && errno == EAGAIN;
	j->order_len += (size_t)n;
	j->order[j->order_len] = '\0';
	while ((end = strchr(j->order, '\n'))) {
		*end = '\0';
		take_order(j, j->order);
		j->order_len -= (size_t)(end + 1 - j->order);
		memmove(j->order, end + 1, j->order_len + 1);
	}
	return true;
}

/* The listener hangs up when nobody is left below the filter. */
static void serve(struct injector *j)
{
	struct pollfd p[] = {{.fd = j->listener_fd, .events = POLLIN},
			     {.fd = j->signal_fd, .events = POLLIN},
			     {.fd = j->takes_orders ? j->talk_fd : -1, .events = POLLIN}};

	for (;;) {
		int n = poll(p, 3, j->ended ? ORPHANS_MS : -1);

		if (n == 0) return;
		if (p[0].revents & POLLIN) answer_one(j);
		else if (p[0].revents & POLLHUP) p[0].fd = -1;
		if (p[1].revents) on_signal(j);
		if (p[2].revents && !on_talk(j)) p[2].fd = -1;
		if (j->ended && p[0].fd < 0) return;
	}
}

static void report(const struct injector *j)
{
	for (unsigned s = 0; s < j->seen_count; s++)
		for (int phase = 0; phase < PHASES; phase++)
			for (size_t i = 0; i < ARRAY_LEN(calls); i++)
				if (j->seen[s].counts[phase][i] && is_first_of_its_number(i))
					(void)dprintf(j->talk_fd, "%s %s %s %u\n", j->seen[s].comm,
						      calls[i].name, phase_names[phase],
						      j->seen[s].counts[phase][i]);
}

/* ---- the command line ---- */

static int list(void)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		(void)printf("%s %s\n", calls[i].name, calls[i].error_name);
	return EXIT_SUCCESS;
}

static bool parse(struct injector *j, int argc, char **argv)
{
	if (argc >= 5 && strcmp(argv[1], "--orders") == 0 && strcmp(argv[3], "--") == 0) {
		j->takes_orders = true;
		j->talk_fd = atoi(argv[2]);
		j->argv = argv + 4;
		return true;
	}
	if (argc < 9 || strcmp(argv[1], "--fail") != 0 || strcmp(argv[7], "--") != 0) return false;
	j->talk_fd = atoi(argv[6]);
	j->argv = argv + 8;
	return order(j, argv[2], argv[3], argv[4], strtoul(argv[5], NULL, 10));
}

int main(int argc, char **argv)
{
	static struct injector j = {.listener_fd = -1};
	pthread_t helper;
	sigset_t ours;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) return list();
	if (!parse(&j, argc, argv)) {
		(void)fputs("usage: injector --list | --orders FD -- PROGRAM...\n"
			    "       injector --fail COMM CALL ERRNO N FD -- PROGRAM...\n",
			    stderr);
		return 2;
	}
	(void)fcntl(j.talk_fd, F_SETFD, FD_CLOEXEC);
	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &ours, NULL);
	j.signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pthread_create(&helper, NULL, start_below_filter, &j) != 0) fail("start a thread", EAGAIN);
	while (__atomic_load_n(&j.listener_fd, __ATOMIC_SEQ_CST) == -1)
		(void)sched_yield();
	if (j.listener_fd < 0) fail("install a filter", j.start_error);
	serve(&j);
	if (j.takes_orders) report(&j);
	(void)pthread_join(helper, NULL);
	return j.status;
}
