/* processes_private.h - what a process is, for those who keep it going: pipes.c (its bytes), process.c (its
 * life and end) and keeping.c (what remains of it). For nobody else. */
#pragma once

#include "agent/input.h"
#include "agent/processes.h"
#include "agent/reactor.h"
#include "agent/tree.h"

struct session_run;

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
	void (*on_read)(struct process *p, bool closed); /* see pipes.h */
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

/* Every one of them, also those that are not found; the next one is p->next. */
struct process *processes_all(void);
void processes_add(struct process *p);
void processes_remove(struct process *p);

/* Somebody ended, or is not read any more. */
void processes_forgetting_due(void);
bool processes_take_forgetting_due(void); /* whether that was said since the last call */

void process_tell_followers(struct process *p);
