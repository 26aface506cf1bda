/*
 * sandbox.h - one sandbox from the keeper's side: what it holds, and the small things that can be done with
 * it.
 *
 *   WAITING ──> PLACING ──> BINDING ───────────────────> LIVE ──> DYING ──> CLEARING ──> (freed)
 *   in line     its files   the agent   │              ↑ it is    killed,   cgroups,
 *   for agent   on disk     contains    ↓              │ there    not yet   tree, socket
 *   and slot                itself      PARKED ──> CLAIMING       dead
 *                                       nobody's yet (ahead.h)
 *
 * One whose tree outlives its processes goes from CLEARING to ASLEEP, and at the next wish for it to WAITING
 * (ending.h). After a restart a recorded one begins as ADOPTING (connected, no answer yet) and becomes LIVE
 * (or PARKED), or goes to DYING. Every state can go to DYING; what runs on a work thread just then is waited
 * for before CLEARING begins. The id may come late and be used again by a successor: on the host a sandbox is
 * called by its run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "keeper/parts.h"
#include "keeper/record.h"
#include "keeper/slots.h"
#include "wire/message.h"

struct link;

/* What somebody wants a sandbox to be. */
struct wish {
	char instance[INSTANCE_MAX + 1];
	struct limits own; /* as in a record */
};

/* Its cgroups: see limits.h. */
enum limits_phase {
	LIMITS_NONE,
	LIMITS_MAKING,
	LIMITS_MADE,
	LIMITS_REMOVING,
};

struct limits_of {
	enum limits_phase phase;
	bool stale;                      /* made for another instance type than was asked for */
	bool wanted;                     /* asked for while the old ones are being removed */
	int fds[LIMITS_FDS];             /* between a work thread and the message */
	void (*then)(struct sandbox *s); /* of one that is made ahead */
};

struct sandbox {
	struct sandbox *next;         /* in its bucket */
	struct sandbox *next_waiting; /* in the line */
	struct keeper *keeper;
	enum sandbox_state state;
	struct record record; /* complete from PLACING on */

	/* From PLACING on; a slot's descriptors only until it is bound. */
	bool has_slot;
	struct slot slot;
	int pidfd;
	struct watch *pid_watch;
	struct link *bond;
	struct watch *bond_watch;
	int listen_fd;
	int front_fds[2]; /* of the first link between front and agent: [0] the front's end */

	struct timer *timer; /* of what the state waits for; NULL mostly */
	struct limits_of limits;
	unsigned working;    /* works of ours on threads */
	struct err work_err; /* what the last of them said */

	/* The end. */
	bool dead;       /* the agent is reaped, or there never was one */
	bool slow;       /* in dying: nobody waits for it any more */
	bool silent;     /* the front has its answer already: no `gone` */
	bool keeps_tree; /* ASLEEP is next, not the end */
	bool wakes;      /* on its way up from there */
	unsigned place_tries;
	bool tree_kept; /* what the last clearing did */
	/* NULL, or what is to be done once it is gone, with its id and AGAIN_WISH: somebody wants it already.
	 */
	void (*again)(struct keeper *k, const char *id, const struct wish *wish);
	struct wish again_wish;
	unsigned clear_tries;
	enum gone_why gone_why;
	char gone_text[160];
};

/* One that has nothing yet but an id, and is not in the population. */
struct sandbox *sandbox_new(struct keeper *k, const char *id, enum sandbox_state state);

/* It must be out of the population, and nothing of it left anywhere. */
void sandbox_free(struct sandbox *s);

/* Forgets what it held: all but its record. */
void sandbox_init(struct sandbox *s);

/* Closes what it holds; the record stays. */
void sandbox_release(struct sandbox *s);

/* The one place where STATE changes. */
void sandbox_become(struct sandbox *s, enum sandbox_state state);

/* A timer of its own, made when first needed. ON_DUE gets the sandbox. */
void sandbox_set_timer(struct sandbox *s, void (*on_due)(void *ctx), uint64_t ms);
void sandbox_clear_timer(struct sandbox *s);

/* sandboxes/RUN, or -errno. Any thread. */
int sandbox_open_dir(const struct sandbox *s);
