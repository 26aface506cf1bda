/*
 * sandbox.h - one sandbox from the keeper's side.
 *
 *   WAITING ──> PLACING ──> BINDING ───────────────────> LIVE ──> DYING ──> CLEARING ──> (freed)
 *   in line     its files   the agent   │              ↑ it is    killed,   cgroups,
 *   for agent   on disk     contains    ↓              │ there    not yet   tree, socket
 *   and slot                itself      PARKED ──> CLAIMING       dead
 *                                       nobody's yet (ahead.h)
 *
 * One whose tree outlives its processes goes from CLEARING to ASLEEP, and at the next wish for it to WAITING (sleep.c).
 * After a restart a recorded one begins as ADOPTING (connected, no answer yet) and becomes LIVE (or PARKED), or goes to DYING.
 * Every state can go to DYING; what runs on a work thread just then is waited for before CLEARING begins. The id may come
 * late and be used again by a successor: on the host a sandbox is called by its run.
 *
 * Trust: an agent lives with strangers. What it says is parsed with a length, and a protocol error costs only its own sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "keeper/keeper.h"
#include "keeper/limits.h"
#include "keeper/record.h"
#include "keeper/slots.h"
#include "wire/message.h"

struct link;
struct timer;
struct watch;

/* What somebody wants a sandbox to be. */
struct wish {
	char instance[INSTANCE_MAX + 1];
	struct limits own;              /* as in a record */
};

struct sandbox {
	struct sandbox *next;           /* in its bucket */
	struct sandbox *next_waiting;   /* in the line */
	struct keeper *keeper;
	enum sandbox_state state;
	struct record record;           /* complete from PLACING on */

	/* From PLACING on; a slot's descriptors only until it is bound. */
	bool has_slot;
	struct slot slot;
	int pidfd;
	struct watch *pid_watch;
	struct link *bond;
	struct watch *bond_watch;
	int listen_fd;
	int front_fds[2];               /* of the first link between front and agent: [0] the front's end */

	struct timer *timer;            /* of what the state waits for; NULL mostly */
	struct limits_of limits;
	unsigned working;               /* works of ours on threads */
	struct err work_err;            /* what the last of them said */

	/* The end. */
	bool dead;                      /* the agent is reaped, or there never was one */
	bool silent;                    /* the front has its answer already: no `gone` */
	bool keeps_tree;                /* ASLEEP is next, not the end */
	bool wakes;                     /* on its way up from there */
	unsigned place_tries;
	bool tree_kept;                 /* what the last clearing did */
	bool again;                     /* create it again when it is gone, as AGAIN_WISH */
	struct wish again_wish;
	unsigned clear_tries;
	enum gone_why gone_why;
	char gone_text[160];
};

/* `create` and `remove` of the front: the fields are judged here. Every answer goes through front.h. */
void sandbox_create(struct keeper *k, const struct msg_create *m);
void sandbox_remove(struct keeper *k, const struct wire_text *id);

/* `sleep` of the front. */
void sandbox_sleep(struct keeper *k, const struct wire_text *id);

/* S, which is ASLEEP, gets in line. */
void sandbox_wake(struct sandbox *s);

/* Cleared, or never woken: ASLEEP, and the front is told. */
void sandbox_rest(struct sandbox *s);

/* Out of the line, with what it waited for at hand. */
void sandbox_place(struct sandbox *s);

/* It cannot be made: the front is told why. */
void sandbox_refuse(struct sandbox *s, const struct err *e);

/* As sandbox_refuse(), and nobody is told. */
void sandbox_give_up(struct sandbox *s);

/* A new one, ID "" for one that is made ahead, gets in line. */
void sandbox_line_up(struct keeper *k, const char *id, const struct wish *wish);

/* It is contained and has its id: LIVE, and the front gets its link. */
void sandbox_hand_over(struct sandbox *s);

/* In line: what it waits for is handed out by keeper_pump(). */
void sandbox_get_in_line(struct sandbox *s);
void sandbox_leave_line(struct sandbox *s);

/* The keeper gets one more, in STATE. */
struct sandbox *sandbox_new(struct keeper *k, const char *id, enum sandbox_state state);

/* A sandbox as one that was made but has nothing yet. */
void sandbox_init(struct sandbox *s);

/* Takes its agent's descriptors, and watches them: for its death, and for what it says. */
void sandbox_hold_agent(struct sandbox *s, int pidfd);
void sandbox_hold_bond(struct sandbox *s, int fd);

/* sandboxes/RUN, or -errno. Any thread. */
int sandbox_open_dir(const struct sandbox *s);

/*
 * What an earlier keeper recorded. HAS_SLOT: its ids are ours. PIDFD -1: its agent is dead. CONNECTED_FD: to the agent;
 * -1: there is none to talk to. Takes both descriptors. What cannot live on ends.
 */
void sandbox_adopt(struct keeper *k, const struct record *rec, bool has_slot, int pidfd, int connected_fd);

/* Ends it: kill, then clear. Again and again is once. */
void sandbox_end(struct sandbox *s, enum gone_why why, const char *text);

/* The one place where STATE changes. */
void sandbox_become(struct sandbox *s, enum sandbox_state state);

/* Once more, after its predecessor is gone. */
void sandbox_create_again(struct keeper *k, const char *id, const struct wish *wish);

/* A timer of its own, made when first needed. ON_DUE gets the sandbox. */
void sandbox_set_timer(struct sandbox *s, void (*on_due)(void *ctx), uint64_t ms);
void sandbox_clear_timer(struct sandbox *s);

/* A new connection to its agent for a new front; it has said hello with the cookie. A descriptor or -errno. */
int sandbox_connect_front(const struct sandbox *s);

/* A living one that comes too late for the start of a front, or whose link was lost, gets one. -errno: it takes none. */
int sandbox_attach(struct sandbox *s);

/* Says hello with the cookie as ROLE on a connected socket. */
int sandbox_greet(const struct record *rec, int fd, enum wire_role role);
