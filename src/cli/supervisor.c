#include "cli/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/program.h"

#define STOP_PATIENCE_MS 60000 /* a thousand sandboxes take some seconds to clear */
#define FIXED_FDS        3

struct supervisor {
	const struct supervised *what;
	int signal_fd;
	int talk_fd;  /* to the keeper; -1: it said all it has to say */
	pid_t keeper; /* 0: none runs */
	bool ready;   /* a keeper has served */
	bool told;    /* why none has */
	bool stopping, done;
	int status;      /* our exit status */
	uint64_t due_ms; /* when to start the next keeper, or when to lose patience; 0: never */
	struct backoff backoff;
};

/* ---- the keeper ---- */

static int start_keeper(struct supervisor *s, struct err *e)
{
	const struct supervised *what = s->what;
	int fds[PROGRAM_FDS_MAX] = {what->lock_fd, what->config_fd};
	int ends[2], r;
	char count[16];
	const char *args[] = {count, NULL};
	/* Our mask stays on: a signal that comes before it listens must wait, not kill it. */
	struct program p = {.name = "tombolo-keeper", .args = args, .fds = fds, .keep_signal_mask = true};

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(e, -errno, "make a socket pair");
	fds[2] = ends[1];
	for (size_t i = 0; i < what->listen_count; i++)
		fds[FIXED_FDS + i] = what->listen_fds[i];
	p.fd_count = FIXED_FDS + what->listen_count;
	(void)snprintf(count, sizeof count, "%zu", what->listen_count);
	r = program_start(&p, &s->keeper, e);
	fd_close(ends[1]);
	if (r < 0) {
		fd_close(ends[0]);
		return r;
	}
	s->talk_fd = ends[0];
	return 0;
}

static void start_or_retry(struct supervisor *s)
{
	struct err e = ERR_NONE;

	s->due_ms = 0;
	if (start_keeper(s, &e) == 0) return;
	(void)fprintf(stderr, "tombolo: %s\n", e.text);
	s->due_ms = clock_ms() + backoff_next(&s->backoff, clock_ms());
	if (s->ready) return;
	s->status = EXIT_FAILURE;
	s->done = true;
}

static void on_keeper_death(struct supervisor *s, int status)
{
	bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	s->keeper = 0;
	s->talk_fd = fd_close(s->talk_fd);
	if (!s->stopping && !s->ready && !s->told)
		(void)fputs("tombolo: the keeper ended before it could serve, and said nothing but its log\n",
			    stderr);
	if (s->stopping || !s->ready) {
		s->status = clean && s->stopping ? EXIT_SUCCESS : EXIT_FAILURE;
		s->done = true;
		return;
	}
	log_event(LOG_ERROR, "keeper_died", "status", LOG_U(status), NULL);
	s->due_ms = clock_ms() + backoff_next(&s->backoff, clock_ms());
}

/* Orphans of a dead keeper are our children, too: agents, a front on its way out. */
static void reap(struct supervisor *s)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->keeper) on_keeper_death(s, status);
	}
}

/* "ready", or the reason why not. */
static void on_talk(struct supervisor *s)
{
	char text[512];
	ssize_t n = read(s->talk_fd, text, sizeof text - 1);

	if (n <= 0) {
		s->talk_fd = fd_close(s->talk_fd);
		return;
	}
	text[n] = '\0';
	if (strcmp(text, "ready\n") != 0) {
		s->told = true;
		(void)fprintf(stderr, "tombolo: %s", text);
	} else if (!s->ready) {
		s->ready = true;
		s->what->on_ready(s->what->ctx);
	}
}

/* ---- stopping ---- */

static void stop(struct supervisor *s)
{
	if (s->stopping) return;
	s->stopping = true;
	/* One that died just now has left sandboxes: only a keeper can end them. */
	if (!s->keeper) start_or_retry(s);
	if (!s->keeper) {
		s->status = EXIT_FAILURE;
		s->done = true;
		return;
	}
	(void)program_signal(s->keeper, SIGTERM);
	s->due_ms = clock_ms() + STOP_PATIENCE_MS;
}

static void on_signal(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGCHLD) reap(s);
		else stop(s);
	}
}

static void on_due(struct supervisor *s)
{
	if (!s->stopping) {
		start_or_retry(s);
		return;
	}
	(void)fputs("tombolo: the keeper does not end, killing it; the next start clears what it leaves\n",
		    stderr);
	(void)program_signal(s->keeper, SIGKILL);
	s->due_ms = 0;
}

static int wait_ms(const struct supervisor *s)
{
	uint64_t now = clock_ms();

	if (!s->due_ms) return -1;
	return s->due_ms > now ? (int)(s->due_ms - now) : 0;
}

static void turn(struct supervisor *s)
{
	struct pollfd p[] = {{.fd = s->signal_fd, .events = POLLIN}, {.fd = s->talk_fd, .events = POLLIN}};
	int n = poll(p, 2, wait_ms(s));

	/* What it said comes before its death. */
	if (n > 0 && p[1].revents) on_talk(s);
	if (n > 0 && p[0].revents) on_signal(s);
	if (!s->done && s->due_ms && clock_ms() >= s->due_ms) on_due(s);
}

int supervise(const struct supervised *what)
{
	struct supervisor s = {.what = what, .talk_fd = -1};
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &ours, NULL);
	s.signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
		perror("tombolo: set up the supervisor");
		return EXIT_FAILURE;
	}
	start_or_retry(&s);
	while (!s.done)
		turn(&s);
	fd_close(s.talk_fd);
	fd_close(s.signal_fd);
	return s.status;
}
