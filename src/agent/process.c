#include "agent/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "agent/command.h"
#include "agent/process_private.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/message.h"

#define QUIET_MS      150  /* without output after the leader's death: nobody means to say more */
#define DRAIN_MS      1000 /* at most, see process.h */
#define HARD_EVERY_MS 10   /* between two rounds of SIGKILL */
#define HARD_MS       1000 /* the tree may resist (a process in the kernel's hands) that long */

static struct process *first, **last = &first;
static bool forgetting_due;

struct process *process_first(void)
{
	return first;
}

struct process *process_next(struct process *p)
{
	return p->next;
}

const struct process_facts *process_facts(const struct process *p)
{
	return &p->facts;
}

unsigned process_live(const struct process *p)
{
	return tree_count(&p->tree);
}

/* ---- the end ---- */

static void forget(struct process *p)
{
	struct process **at = &first;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	if (!p->next) last = at;
	process_pipes_close(p);
	timer_stop(&p->deadline);
	timer_stop(&p->drain);
	log_done(&p->log);
	free(p->record);
	free(p);
}

/* Ended, nobody holds its pipes, nobody of its tree lives: nothing would be missed. */
static bool is_forgettable(const struct process *p)
{
	return p->facts.ended && process_pipes_closed(p) && !p->tree.seq;
}

static struct process *oldest_ended(bool with_log)
{
	struct process *oldest = NULL;

	for (struct process *p = first; p; p = p->next) {
		if (!is_forgettable(p) || (with_log && !p->log.events)) continue;
		if (!oldest || p->facts.ended_ms < oldest->facts.ended_ms) oldest = p;
	}
	return oldest;
}

void processes_turn(void)
{
	size_t weight = 0;
	unsigned count = 0;

	if (!forgetting_due) return;
	forgetting_due = false;
	for (struct process *p = first; p; p = p->next) {
		if (!is_forgettable(p)) continue;
		count++;
		weight += log_weight(&p->log);
	}
	for (; count > PROCESSES_KEPT; count--) {
		struct process *p = oldest_ended(false);

		weight -= log_weight(&p->log);
		forget(p);
	}
	while (weight > LOGS_KEPT_BYTES) {
		struct process *p = oldest_ended(true);

		weight -= log_weight(&p->log);
		log_done(&p->log);
	}
}

/* After the end, whenever a pipe was closed or the tree became empty. Frees no process: callers walk the
 * list. */
static void settle(struct process *p)
{
	if (!p->facts.ended || !process_pipes_closed(p)) return;
	log_settle(&p->log);
	forgetting_due = true;
}

static void end(struct process *p)
{
	struct process_client *client = take_ptr(p->client);

	timer_stop(&p->drain);
	if (p->force == FORCE_NONE) timer_stop(&p->deadline);
	p->facts.ended = true;
	p->facts.ended_ms = clock_wall_ms();
	p->facts.duration_ms = clock_ms() - p->started_at;
	p->facts.bytes = p->log.total;
	p->facts.left_running = tree_remove(&p->tree) ? 0 : tree_count(&p->tree);
	if (client) client->on_end(client, p);
	process_input_end(p);
	process_resume(p);
	settle(p);
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
	until = MIN(p->quiet_from + QUIET_MS, p->drain_until);
	if (now < until) {
		*ret_wait_ms = until - now;
		return false;
	}
	return !p->out[0].owed && !p->out[1].owed;
}

void process_check_end(struct process *p)
{
	uint64_t wait_ms;

	if (!p->reaped || p->facts.ended) return;
	/* A tree that is being ended by force is waited for: "timed out" shall mean that nothing is left. */
	if (p->force != FORCE_NONE && p->force != FORCE_GAVE_UP && !tree_remove(&p->tree)) return;
	if (is_drained(p, &wait_ms)) {
		end(p);
		return;
	}
	if (wait_ms) timer_start(&p->drain, wait_ms);
}

static void on_drain_time(struct timer *t)
{
	process_check_end(container_of(t, struct process, drain));
}

void process_pipe_closed(struct process *p)
{
	process_check_end(p);
	settle(p);
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
		p->facts.timed_out = !p->reaped;
		if (p->reaped) return;
		p->force = FORCE_SOFT;
		tree_signal(&p->tree, SIGTERM);
		timer_start(t, p->grace_ms);
		return;
	case FORCE_SOFT: kill_hard(p); return;
	case FORCE_HARD:
		if (tree_remove(&p->tree)) break;
		if (clock_ms() < p->hard_until) {
			kill_hard(p);
			return;
		}
		p->force = FORCE_GAVE_UP;
		break;
	case FORCE_GAVE_UP: return;
	}
	process_check_end(p);
}

void process_signal(struct process *p, int signo)
{
	if (!p->facts.ended) p->cancel_signo = signo;
	if (signo == SIGKILL) kill_hard(p);
	else tree_signal(&p->tree, signo);
}

/* ---- the leader's death ---- */

static void note_status(struct process *p, int status, const struct rusage *use)
{
	struct process_facts *f = &p->facts;

	f->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	f->code = f->signo ? 128 + f->signo : WEXITSTATUS(status);
	f->cancelled = p->cancel_signo && f->signo == p->cancel_signo;
	f->cpu_ms = (uint64_t)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000 +
		    (uint64_t)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) / 1000;
	f->max_memory = (uint64_t)use->ru_maxrss * 1024;
}

static void on_leader_died(struct process *p, int status, const struct rusage *use)
{
	uint64_t now = clock_ms();

	p->reaped = true;
	p->quiet_from = now;
	p->drain_until = now + DRAIN_MS;
	note_status(p, status, use);
	process_pipes_read(p);
	process_pipes_owe(p);
	process_check_end(p);
}

static struct process *process_of_leader(pid_t pid)
{
	for (struct process *p = first; p; p = p->next) {
		if (!p->reaped && p->facts.pid == pid) return p;
	}
	return NULL;
}

void processes_reap(void)
{
	struct rusage use;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0) {
		struct process *p = process_of_leader(pid);

		if (p) on_leader_died(p, status, &use);
	}
	/* Any of the dead may have been the last of a tree whose leader is long gone. */
	for (struct process *p = first, *next; p; p = next) {
		next = p->next;
		if (!p->reaped || !p->tree.seq || !tree_remove(&p->tree)) continue;
		if (p->facts.ended) settle(p);
		else process_check_end(p);
	}
}

/* ---- the start ---- */

/* Copies of what is told later: one block, the list of pointers first. */
static void keep_record(struct process *p, const struct process_spec *spec)
{
	size_t size = 0, cwd_size = strlen(spec->cwd) + 1;
	const uint8_t *at = spec->argv->packed;
	uint32_t count = 0, len;
	const char *word;
	char *text;

	while ((word = wire_list_next(spec->argv, &at, &len)) && size + len + 1 <= PROCESS_ARGV_MAX &&
	       count < 1024) {
		size += len + 1;
		count++;
	}
	p->record = mem_new(count * sizeof(char *) + size + cwd_size);
	text = (char *)p->record + count * sizeof(char *);
	p->facts.argv = p->record;
	p->facts.argc = count;
	at = spec->argv->packed;
	for (uint32_t i = 0; i < count; i++) {
		word = wire_list_next(spec->argv, &at, &len);
		((char **)p->record)[i] = text;
		text = mempcpy(text, word, len + 1);
	}
	memcpy(text, spec->cwd, cwd_size);
	p->facts.cwd = text;
}

static struct process *process_new(const struct process_spec *spec)
{
	struct process *p = mem_new(sizeof *p);

	process_pipes_init(p);
	p->client = spec->client;
	p->grace_ms = spec->grace_ms;
	p->deadline.on_time = on_deadline;
	p->drain.on_time = on_drain_time;
	keep_record(p, spec);
	*last = p;
	last = &p->next;
	return p;
}

static int start(struct process *p, const struct process_spec *spec, int theirs[3], enum spawn_step *ret_step,
		 struct err *e)
{
	struct spawn_spec birth = {
		.command = spec->command, .env = spec->env, .cwd = spec->cwd, .uid = spec->uid};
	pid_t pid;
	int r;

	*ret_step = SPAWN_CLONE;
	r = process_pipes_make(p, spec->with_stdin, theirs, e);
	if (r < 0) return r;
	r = tree_open(&p->tree, birth.attach_fds, &birth.attach_count, e);
	if (r < 0) return r;
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
		forget(p);
		return r;
	}
	id_make_uuid(p->facts.id);
	p->facts.started_ms = clock_wall_ms();
	p->started_at = clock_ms();
	if (spec->timeout_ms) timer_start(&p->deadline, spec->timeout_ms);
	process_pipes_watch(p);
	*ret = p;
	return 0;
}

void process_detach(struct process *p)
{
	p->client = NULL;
	process_resume(p);
}
