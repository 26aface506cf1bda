/*
 * registry.h - the front's picture of all sandboxes, and its talk with the keeper who makes and removes them.
 *
 * Theory of operation: the keeper is the truth. Over the control link it tells of each living sandbox
 * (`attached`, which brings our link to its agent), of each that is no more (`gone`), and, when all that
 * lived before us are told, `ready`. We ask: `create` (answered by `attached` or `refused`), `remove`
 * (answered by `gone`), `inspect` (answered by `usage`). One sandbox is in one of these states:
 *
 *     ABSENT ──start──> MAKING ──attached──> LIVE ──remove──> REMOVING ──gone──> ABSENT
 *     ASLEEP ──start──> MAKING               LIVE ──idle──> FALLING_ASLEEP ──asleep──> ASLEEP
 *
 * Requests that need a sandbox wait on it while it is MAKING, however many there are: one `create` is sent.
 * Those that come while it is REMOVING (or FALLING_ASLEEP) wait for the end of that and then get a new one
 * (or wake it). A LIVE one whose link breaks is ABSENT to us; the keeper either says `gone`, or answers the
 * next `create` with a new link.
 *
 * Never: a callback from inside the call that armed it; a wait that nobody answers (MAKING_MAX_MS).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/message.h"

struct agent_link;
struct limits;
struct loop;
struct sandbox;
struct sandbox_wait;
struct sandboxes;

enum sandbox_state {
	SANDBOX_ABSENT,
	SANDBOX_MAKING,
	SANDBOX_LIVE,
	SANDBOX_REMOVING,
	SANDBOX_FALLING_ASLEEP,
	SANDBOX_ASLEEP, /* a tree on disk, and no process */
};

struct sandboxes_callbacks {
	void (*on_ready)(void *ctx);       /* the picture is complete: serve */
	void (*on_keeper_lost)(void *ctx); /* what lives goes on; nothing can be made or removed any more */
	void (*on_parked)(void *ctx, unsigned ready, bool full); /* how many are made ahead; may be NULL */
};

/* Takes CONTROL_FD. ISSUED_MAX: how many issued ids are remembered. */
struct sandboxes *sandboxes_new(struct loop *loop, int control_fd, size_t issued_max,
				const struct sandboxes_callbacks *callbacks, void *ctx);
struct sandboxes *sandboxes_free(struct sandboxes *all);

/*
 * We end: every operation is told so (END_LOST, TEXT), and nothing new can be started. The sandboxes
 * themselves go on.
 */
void sandboxes_leave(struct sandboxes *all, const char *text);

/* ---- idle sleep ---- */

/* A living sandbox without a user for AFTER_MS falls asleep; 0, as at first: none does. */
void sandboxes_sleep_after(struct sandboxes *all, uint64_t after_ms);

/*
 * Somebody uses ID, whatever there is of it, until sandbox_unuse(). NULL, which that takes, too: nobody needs
 * to know.
 */
struct sandbox *sandboxes_use(struct sandboxes *all, const char *id);
void sandbox_unuse(struct sandbox *sb);

/* ---- one sandbox ---- */

/* The living sandbox ID, or NULL. Good until control returns to the loop. */
struct sandbox *sandboxes_find(struct sandboxes *all, const char *id);
struct sandbox *sandboxes_sleeper(struct sandboxes *all, const char *id); /* the same, asleep */
enum sandbox_state sandboxes_state(struct sandboxes *all, const char *id);

/* Why the last sandbox ID ended by itself; NULL: it did not, as far as we remember. */
const char *sandboxes_lost(const struct sandboxes *all, const char *id);

enum sandbox_state sandbox_state(const struct sandbox *sb);
const char *sandbox_id(const struct sandbox *sb);
const char *sandbox_run(const struct sandbox *sb); /* names this life of the id */
const char *sandbox_instance(const struct sandbox *sb);
uint64_t sandbox_created_ms(const struct sandbox *sb); /* since 1970 */
struct agent_link *sandbox_link(struct sandbox *sb);

/* How an asking ended. Texts are good during the call. */
struct sandbox_outcome {
	struct sandbox *sandbox;       /* of a start that worked; NULL otherwise */
	enum refusal refused;          /* of a start that did not */
	int error;                     /* 0, or a negative errno */
	const char *text;              /* why not */
	const struct msg_usage *usage; /* of an inspection that worked */
};
typedef void on_outcome(void *ctx, const struct sandbox_outcome *outcome);

/*
 * Each asks once and answers once, later; until then the wait can be given up with sandbox_wait_cancel().
 * NULL: the keeper cannot be asked. The sandbox of sandboxes_start() must not live yet: sandboxes_find()
 * comes first. It gets the instance type it was issued with.
 */
struct sandbox_wait *sandboxes_start(struct sandboxes *all, const char *id, on_outcome *on_started,
				     void *ctx);
struct sandbox_wait *sandboxes_remove(struct sandboxes *all, const char *id, on_outcome *on_removed,
				      void *ctx);
struct sandbox_wait *sandboxes_inspect(struct sandboxes *all, const char *id, on_outcome *on_usage,
				       void *ctx);

/* Returns NULL; NULL is fine. What was asked for happens all the same. */
struct sandbox_wait *sandbox_wait_cancel(struct sandbox_wait *w);

/* ---- all of them ---- */

/* Issues a new id. INSTANCE: the wanted type, "" for none. OWN: limits in place of its; 0: none. */
void sandboxes_issue(struct sandboxes *all, const char *instance, const struct limits *own, char *ret_id);
bool sandboxes_issued(const struct sandboxes *all, const char *id);

/* Living and coming ones, without those that sleep; the most there can be (0: not known). */
unsigned sandboxes_count(const struct sandboxes *all);
unsigned sandboxes_limit(const struct sandboxes *all);

/* Keep WANT sandboxes made ahead, for sandboxes_start() to take; answered by on_parked. */
void sandboxes_park(struct sandboxes *all, unsigned want);

/* ON_EACH for each living or sleeping sandbox, in the order of their making. */
void sandboxes_each(struct sandboxes *all, void (*on_each)(void *ctx, struct sandbox *sb), void *ctx);

/* What is wrong with the server, for GET /health: NULL after the last. */
const char *sandboxes_fault(const struct sandboxes *all, size_t index);
