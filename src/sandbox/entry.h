/*
 * entry.h - inside the room: the entries of the registry, and who waits on them. Shared by registry.c (what
 * is asked), told.c (what the keeper and the agents tell) and entry.c.
 *
 * An entry is there for every id that says something: a sandbox in some state, somebody who uses it, or
 * somebody who waits. Whoever may have taken the last of that away calls entry_tidy() last, and touches the
 * entry no more.
 */
#pragma once

#include "base/id.h"
#include "isolation/limits.h"
#include "loop/loop.h"
#include "sandbox/agent_link.h"
#include "sandbox/control.h"
#include "sandbox/hash.h"
#include "sandbox/idle.h"
#include "sandbox/notes.h"
#include "sandbox/registry.h"

#define FAULTS_MAX 16

enum wait_kind { WAIT_START, WAIT_REMOVE, WAIT_INSPECT, WAIT_KINDS };

struct sandbox_wait {
	struct sandbox *sandbox;
	enum wait_kind kind;
	on_outcome *answer;
	void *ctx;
	struct sandbox_wait *prev, *next;
};

struct sandbox {
	struct sandboxes *all;
	char id[SANDBOX_ID_MAX + 1];
	enum sandbox_state state;
	struct agent_link *link; /* LIVE, and REMOVING until `gone` */
	char *run, *instance;
	uint64_t created_ms;
	struct timer *making_due;
	struct idler idler;
	bool late;  /* MAKING, but nobody asked for it: see `asleep` */
	bool slept; /* there is a tree: a start that fails leaves it asleep */
	struct sandbox_wait *waits[WAIT_KINDS];
	UT_hash_handle hh;
};

struct issued {
	char instance[32]; /* "": no wish. Too long a name is cut. */
	struct limits own;
};

struct lost {
	char why[160]; /* as the keeper told it */
};

struct sandboxes {
	struct loop *loop;
	struct control *control;
	bool keeper_lost;
	struct sandbox *first; /* by id, in the order of their making */
	struct notes *issued;  /* struct issued: ids that were handed out and not deleted (API 3.4) */
	struct notes *lost;    /* struct lost: sandboxes that ended by themselves */
	struct idlers *idlers;
	bool sleeps;
	unsigned limit;
	char *faults[FAULTS_MAX];
	const struct sandboxes_callbacks *callbacks;
	void *ctx;
};

void note_issued(struct sandboxes *all, const char *id, const char *instance, const struct limits *own);
void note_lost(struct sandboxes *all, const char *id, const char *why);

/* ---- waits ---- */

struct sandbox_wait *wait_add(struct sandbox *sb, enum wait_kind kind, on_outcome *answer, void *ctx);

/* Answers those who wait now; a callback that asks again waits for the next answer. */
void waits_answer(struct sandbox *sb, enum wait_kind kind, const struct sandbox_outcome *outcome);
void waits_fail(struct sandbox *sb, enum wait_kind kind, enum refusal refused, int error, const char *text);

/* ---- entries ---- */

/* The entry of ID, or NULL; entry_need() makes it, ABSENT. */
struct sandbox *entry_find(const struct sandboxes *all, const char *id);
struct sandbox *entry_need(struct sandboxes *all, const char *id);

/* Whatever it says, and without a word to those who wait. */
void entry_free(struct sandbox *sb);

/* An entry that says nothing (no sandbox, nobody waiting) is forgotten. */
void entry_tidy(struct sandbox *sb);

/* The one place where the state changes. */
void entry_set_state(struct sandbox *sb, enum sandbox_state state);

/* Its operations end so. There need not be a link. */
void entry_end_link(struct sandbox *sb, enum end_reason reason, const char *text);

/* MAKING: the keeper is asked for it. */
void entry_start(struct sandbox *sb);

/* Nothing can be asked any more: those who wait for an answer are told so. */
void entries_end_asking(struct sandboxes *all, const char *text);
