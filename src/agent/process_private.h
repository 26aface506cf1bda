/* process_private.h - what process.c (life and end), processes.c (all of them) and pipes.c (bytes) share. For
 * nobody else. */
#pragma once

#include "agent/process.h"
#include "agent/reactor.h"

/* How far ending by force has come. */
enum force { FORCE_NONE, FORCE_SOFT, FORCE_HARD, FORCE_GAVE_UP };

struct output_pipe {
	struct process *process;
	int fd; /* -1: closed */
	struct watch watch;
	uint8_t stream;
	size_t owed;       /* bytes that lay in it when the leader died and are not read yet */
	unsigned failures; /* to read it, since the last success */
};

struct process {
	struct process *next;
	struct process_facts facts;
	void *record; /* memory of facts.argv and facts.cwd */
	struct process_client *client;
	struct session_run *session_run;
	struct process_follower *followers;
	struct log log;
	struct tree tree;
	struct output_pipe out[2];
	struct input in;
	bool background;
	bool retired;           /* not found any more, and not kept */
	uint64_t look_again_ms; /* in the background: see has_settled() */
	bool reaped;
	bool mourned;     /* and nothing has been done about it yet */
	bool had_orphans; /* that we reaped before the end */
	uint64_t cpu_us;
	enum force force;
	int cancel_signo;
	uint32_t grace_ms;
	uint64_t started_at, hard_until;  /* monotonic, as are the following */
	uint64_t quiet_from, drain_until; /* see is_drained() */
	uint64_t blocked_since;           /* when output began to wait for the client; 0: it does not */
	struct timer deadline, drain;
	struct timer gathering; /* see pipes.c */
};

/* ---- pipes.c ---- */

void process_pipes_init(struct process *p);

/* Makes the pipes, or the terminal; THEIRS gets the child's ends: _close_theirs() after the spawn, and after
 * a failure. */
int process_pipes_make(struct process *p, const struct process_spec *spec, int theirs[3], struct err *e);
void process_pipes_close_theirs(int theirs[3]);
int process_pipes_watch(struct process *p, struct err *e);
void process_pipes_close(struct process *p);
bool process_pipes_hold_output(const struct process *p); /* something lies in them */
bool process_pipes_closed(const struct process *p);      /* those of output */
void process_pipes_owe(struct process *p);               /* the leader died: note what still lies in them */
void process_pipes_read(struct process *p);              /* what is there, as far as the client has room */

/* ---- process.c ---- */

void process_check_end(struct process *p);
void process_pipe_closed(struct process *p); /* a pipe of output came to its end */
void process_tell_followers(struct process *p);
void process_forget(struct process *p);

/* ---- processes.c ---- */

/* Every one of them, also those that are not found; the next one is p->next. */
struct process *processes_all(void);
void processes_add(struct process *p);
void processes_remove(struct process *p);
void processes_forgetting_due(void); /* somebody ended, or is not read any more */
