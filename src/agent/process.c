#include "agent/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "agent/input.h"
#include "agent/pipes.h"
#include "agent/processes_private.h"
#include "agent/pty.h"
#include "agent/session.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "wire/message.h"

#define QUIET_MS          150  /* without output after the leader's death: nobody means to say more */
#define QUIET_TTY_MS      200  /* the same for a terminal */
#define DRAIN_MS          1000 /* at most, see process.h */
#define LOOK_AGAIN_MS     10   /* see has_settled() */
#define LOOK_AGAIN_MAX_MS 1000
#define HARD_EVERY_MS     10   /* between two rounds of SIGKILL */
#define HARD_MS           1000 /* the tree may resist (a process in the kernel's hands) that long */

/* ---- the end ---- */

void process_forget(struct process *p)
{
	processes_remove(p);
	process_pipes_close(p);
	timer_stop(&p->deadline);
	timer_stop(&p->drain);
	timer_stop(&p->gathering);
	log_done(&p->log);
	(void)session_run_end(p->session_run, false);
	free(p->record);
	free(p);
}

/* After the end, whenever a pipe was closed or the tree became empty. Frees no process: callers walk the
 * list. */
static void settle(struct process *p)
{
	if (!p->facts.ended || !process_pipes_closed(p)) return;
	log_settle(&p->log);
	processes_forgetting_due();
}

/* Whether the tree is empty. On v2 its leaf has counted those, too, that we reap late or never. */
static bool leave_tree(struct process *p)
{
	if (p->had_orphans && !p->facts.ended) p->cpu_us = MAX(p->cpu_us, tree_cpu_us(&p->tree));
	return tree_remove(&p->tree);
}

static void end(struct process *p)
{
	struct process_client *client = take_ptr(p->client);

	timer_stop(&p->drain);
	if (p->force == FORCE_NONE) timer_stop(&p->deadline);
	p->facts.left_running = leave_tree(p) ? 0 : tree_count(&p->tree);
	p->facts.cpu_ms = p->cpu_us / 1000;
	p->facts.ended = true;
	p->facts.ended_ms = clock_wall_ms();
	p->facts.duration_ms = clock_ms() - p->started_at;
	p->facts.bytes = p->log.total;
	/* A terminal that was hung up takes no keys, and says so by an error. */
	p->facts.bytes_lost |= p->in.lost && p->facts.kind != KIND_TERMINAL;
	if (client) client->on_end(client, p);
	if (p->facts.kind == KIND_TERMINAL) process_pipes_close(p);
	process_input_end(p);
	process_resume(p);
	settle(p);
	process_tell_followers(p);
}

/* Whether the pipes may be taken for drained; otherwise *RET_WAIT_MS tells when to look again (0: on an
 * event). */
static bool is_drained(struct process *p, uint64_t *ret_wait_ms)
{
	uint64_t now = clock_ms(), until;

	*ret_wait_ms = 0;
	if (process_pipes_closed(p)) return true;
	/* The client's credit will bring us back. */
	if (p->blocked_since && process_pipes_hold_output(p)) return false;
	until = p->quiet_from + (p->facts.kind == KIND_TERMINAL ? QUIET_TTY_MS : QUIET_MS);
	until = MIN(until, p->drain_until);
	if (now < until) {
		*ret_wait_ms = until - now;
		return false;
	}
	return !p->out[0].owed && !p->out[1].owed;
}

/*
 * In the background: whether the leader's process group is empty and the pipes are at their end. Both may
 * depend on processes that are not our children; their deaths reach us as those of orphans, or by the pipes.
 * But of a process that leaves the group, as a daemon does, nobody tells us: so while the group is all that
 * is left, we look again, less and less often.
 */
static bool has_settled(struct process *p)
{
	if (p->force == FORCE_GAVE_UP) return true;
	if (!process_pipes_closed(p)) return false;
	if (tree_group_is_gone(&p->tree)) return true;
	if (!p->drain.armed) {
		p->look_again_ms = MIN(MAX(2 * p->look_again_ms, LOOK_AGAIN_MS), LOOK_AGAIN_MAX_MS);
		timer_start(&p->drain, p->look_again_ms);
	}
	return false;
}

static void check_end(struct process *p)
{
	uint64_t wait_ms;

	if (!p->reaped || p->mourned || p->facts.ended) return;
	/* A tree that is being ended by force is waited for: "timed out" shall mean that nothing is left. */
	if (p->force != FORCE_NONE && p->force != FORCE_GAVE_UP && !leave_tree(p)) return;
	if (p->background) {
		if (has_settled(p)) end(p);
		return;
	}
	if (is_drained(p, &wait_ms)) {
		end(p);
		return;
	}
	if (wait_ms) timer_start(&p->drain, wait_ms);
}

static void on_drain_time(struct timer *t)
{
	check_end(container_of(t, struct process, drain));
}

static void on_read(struct process *p, bool closed)
{
	check_end(p);
	if (closed) settle(p);
}

void process_resume(struct process *p)
{
	if (process_pipes_resume(p)) check_end(p);
}

/* ---- by force ---- */

static void kill_hard(struct process *p)
{
	if (p->force != FORCE_HARD) {
		p->force = FORCE_HARD;
		p->hard_until = clock_ms() + HARD_MS;
	}
	tree_signal(&p->tree, SIGKILL);
	timer_start(&p->deadline, HARD_EVERY_MS);
}

static void on_deadline(struct timer *t)
{
	struct process *p = container_of(t, struct process, deadline);

	switch (p->force) {
	case FORCE_NONE:
		if (p->reaped && !p->background) return;
		p->facts.timed_out = true;
		p->force = FORCE_SOFT;
		tree_signal(&p->tree, SIGTERM);
		timer_start(t, p->grace_ms);
		return;
	case FORCE_SOFT: kill_hard(p); return;
	case FORCE_HARD:
		if (leave_tree(p)) break;
		if (clock_ms() < p->hard_until) {
			kill_hard(p);
			return;
		}
		p->force = FORCE_GAVE_UP;
		break;
	case FORCE_GAVE_UP: return;
	}
	check_end(p);
}

void process_signal(struct process *p, int signo)
{
	if (!p->facts.ended) p->cancel_signo = signo;
	if (signo == SIGKILL) kill_hard(p);
	else tree_signal(&p->tree, signo);
}

static void end_softly(struct process *p, int signo, uint64_t grace_ms)
{
	if (p->facts.ended || p->force != FORCE_NONE) return;
	p->cancel_signo = signo;
	p->force = FORCE_SOFT;
	tree_signal(&p->tree, signo);
	tree_signal(&p->tree, SIGCONT); /* the stopped, too, shall hear of it */
	timer_start(&p->deadline, grace_ms);
}

void process_terminate(struct process *p, uint64_t grace_ms)
{
	end_softly(p, SIGTERM, grace_ms);
}

void process_hang_up(struct process *p)
{
	if (p->facts.ended) return;
	process_pipes_close(p);
	end_softly(p, SIGHUP, HANG_UP_MS);
	check_end(p);
}

/* ---- the leader's death ---- */

static void note_use(struct process *p, const struct rusage *use)
{
	p->cpu_us += (uint64_t)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000000 +
		     (uint64_t)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
	p->facts.max_memory = MAX(p->facts.max_memory, (uint64_t)use->ru_maxrss * 1024);
}

static void note_death(struct process *p, int status, const struct rusage *use)
{
	struct process_facts *f = &p->facts;

	p->reaped = p->mourned = true;
	f->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	f->code = f->signo ? 128 + f->signo : WEXITSTATUS(status);
	f->cancelled = p->cancel_signo && f->signo == p->cancel_signo;
	note_use(p, use);
}

static void on_leader_died(struct process *p)
{
	uint64_t now = clock_ms();

	p->mourned = false;
	p->quiet_from = now;
	p->drain_until = now + DRAIN_MS;
	cause_find(&p->facts.cause, &p->tree, p->facts.code, p->facts.max_memory,
		   p->force == FORCE_HARD || p->cancel_signo == SIGKILL);
	/* Before anybody can hear of the end: the next command shall find what this one left. */
	p->session_run = session_run_end(p->session_run,
					 !p->facts.signo && !p->facts.timed_out && p->force == FORCE_NONE);
	process_pipes_read(p);
	process_pipes_owe(p);
	check_end(p);
}

static struct process *process_of_leader(pid_t pid)
{
	for (struct process *p = processes_all(); p; p = p->next) {
		if (!p->reaped && p->facts.pid == pid) return p;
	}
	return NULL;
}

/* An orphan is ours to reap, and was somebody's: a command and what it starts are a session of their own. */
static struct process *process_of_orphan(pid_t pid)
{
	pid_t session = getsid(pid);

	for (struct process *p = processes_all(); p; p = p->next) {
		if (!p->facts.ended && p->facts.pid == session) return p;
	}
	return NULL;
}

static void reap(pid_t pid)
{
	struct process *p = process_of_leader(pid), *parent = p ? NULL : process_of_orphan(pid);
	struct rusage use;
	int status;

	if (wait4(pid, &status, WNOHANG, &use) != pid) return;
	if (p) note_death(p, status, &use);
	if (!parent) return;
	parent->had_orphans = true;
	note_use(parent, &use);
}

/* 0: none. It stays, for reap(): of who is reaped nobody knows whose he was. */
static pid_t next_of_the_dead(void)
{
	siginfo_t info = {0};

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ? 0 : info.si_pid;
}

/* Largest first: see cause.c. */
static struct process *next_of_the_mourned(void)
{
	struct process *largest = NULL;

	for (struct process *p = processes_all(); p; p = p->next) {
		if (p->mourned && (!largest || p->facts.max_memory > largest->facts.max_memory)) largest = p;
	}
	return largest;
}

void processes_reap(pid_t named)
{
	struct process *dead;
	pid_t pid;

	/* A leader that the signal names is reaped without a look at it: a short command's death costs two
	 * calls. */
	if (process_of_leader(named)) reap(named);
	while ((pid = next_of_the_dead()) > 0)
		reap(pid);
	/* After the orphans, whose use is theirs. */
	while ((dead = next_of_the_mourned()))
		on_leader_died(dead);
	/* Any of the dead may have been the last of a tree whose leader is long gone. */
	for (struct process *p = processes_all(), *next; p; p = next) {
		next = p->next;
		if (!p->reaped) continue;
		if (p->background && !p->facts.ended) check_end(p);
		if (!p->tree.seq || !leave_tree(p)) continue;
		if (p->facts.ended) settle(p);
		else check_end(p);
	}
}

/* ---- the start ---- */

/* Copies of what is told later: one block, the list of pointers first. */
static void keep_record(struct process *p, const struct process_spec *spec)
{
	const char *session = spec->session ? spec->session : "";
	size_t size = 0, cwd_size = strlen(spec->cwd) + 1, session_size = strlen(session) + 1;
	const uint8_t *at = spec->argv->packed;
	uint32_t count = 0, len;
	const char *word;
	char *text;

	while ((word = wire_list_next(spec->argv, &at, &len)) && size + len + 1 <= PROCESS_ARGV_MAX &&
	       count < 1024) {
		size += len + 1;
		count++;
	}
	p->record = mem_new(count * sizeof(char *) + size + cwd_size + session_size);
	text = (char *)p->record + count * sizeof(char *);
	p->facts.argv = p->record;
	p->facts.argc = count;
	at = spec->argv->packed;
	for (uint32_t i = 0; i < count; i++) {
		word = wire_list_next(spec->argv, &at, &len);
		((char **)p->record)[i] = text;
		text = mempcpy(text, word, len + 1);
	}
	p->facts.cwd = text;
	text = mempcpy(text, spec->cwd, cwd_size);
	p->facts.session = text;
	memcpy(text, session, session_size);
}

static struct process *process_new(const struct process_spec *spec)
{
	struct process *p = mem_new(sizeof *p);

	p->facts.kind = spec->kind;
	p->log.kind = spec->kind == KIND_TERMINAL ? LOG_OF_TERMINAL : LOG_OF_PROCESS;
	p->background = spec->background;
	p->retired = spec->forgotten;
	process_pipes_init(p, on_read);
	input_init(&p->in, spec->kind == KIND_TERMINAL ? KEYS_HELD : STDIN_WINDOW);
	p->client = spec->client;
	p->session_run = spec->session_run;
	p->grace_ms = spec->grace_ms;
	p->deadline.on_time = on_deadline;
	p->drain.on_time = on_drain_time;
	keep_record(p, spec);
	processes_add(p);
	return p;
}

static int start(struct process *p, const struct process_spec *spec, int theirs[3], enum spawn_step *ret_step,
		 struct err *e)
{
	struct spawn_spec birth = {.command = spec->command,
				   .env = spec->env,
				   .cwd = spec->cwd,
				   .uid = spec->uid,
				   .terminal = spec->kind == KIND_TERMINAL};
	pid_t pid;
	int r;

	*ret_step = SPAWN_CLONE;
	if (birth.terminal) r = process_pipes_make_terminal(p, spec->uid, spec->cols, spec->rows, theirs, e);
	else r = process_pipes_make(p, spec->given_stdio, spec->with_stdin, theirs, e);
	if (r == 0) r = process_pipes_watch(p, e);
	if (r < 0) return r;
	r = tree_open(&p->tree, birth.attach_fds, &birth.attach_count, e);
	if (r < 0) return r;
	cause_begin(&p->facts.cause, &p->tree);
	memcpy(birth.stdio, theirs, sizeof birth.stdio);
	pid = spawn(&birth, ret_step);
	if (pid < 0) {
		(void)tree_remove(&p->tree);
		return err_set(e, pid, "start");
	}
	p->facts.pid = p->tree.leader = pid;
	return 0;
}

int process_start(const struct process_spec *spec, struct process **ret, enum spawn_step *ret_step,
		  struct err *e)
{
	struct process *p = process_new(spec);
	int theirs[3] = {-1, -1, -1};
	int r;

	r = start(p, spec, theirs, ret_step, e);
	process_pipes_close_theirs(theirs);
	if (r < 0) {
		process_forget(p);
		return r;
	}
	if (spec->name) (void)snprintf(p->facts.id, sizeof p->facts.id, "%s", spec->name);
	else id_make_uuid(p->facts.id);
	p->facts.started_ms = clock_wall_ms();
	p->started_at = clock_ms();
	if (spec->timeout_ms) timer_start(&p->deadline, spec->timeout_ms);
	*ret = p;
	return 0;
}

void process_detach(struct process *p)
{
	p->client = NULL;
	process_resume(p);
}

/* ---- input ---- */

int process_input(struct process *p, struct input_source *s, const void *bytes, size_t len)
{
	int r = input_add(&p->in, s, bytes, len);

	if (r == 0) return 0;
	if (p->facts.kind != KIND_TERMINAL) return -EPROTO;
	s->on_taken(s, len);
	return 0;
}

void process_input_end(struct process *p)
{
	input_end(&p->in);
}

void process_input_forget(struct process *p, const struct input_source *s)
{
	input_forget(&p->in, s);
}

void process_resize(struct process *p, uint16_t cols, uint16_t rows)
{
	if (p->facts.kind == KIND_TERMINAL && p->out[0].fd >= 0) pty_resize(p->out[0].fd, cols, rows);
}
