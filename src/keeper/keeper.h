/*
 * keeper.h - the keeper's parts, put together.
 *
 * Theory of operation: everything runs on one loop; what may block runs on its work threads and comes back. A sandbox
 * (sandbox.h) needs a parked agent (parking.h) and a prepared slot (slots.h); creations wait in a line for both, and
 * keeper_pump() hands out what there is, oldest first. The front (front.h) asks and is told; it may come and go. At start,
 * sweep.h takes over what an earlier keeper left alive and removes the rest; only then does the front start. As many
 * sandboxes as the front wishes are made before anybody needs them (ahead.h); a creation takes one of those first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"
#include "isolation/slot.h"
#include "keeper/admission.h"
#include "keeper/ahead.h"
#include "keeper/state.h"

struct blocks;
struct cgroups;
struct err;
struct front;
struct issued;
struct loop;
struct lost;
struct parking;
struct quota;
struct sandbox;
struct slots;
struct syncing;
struct trash;
struct timer;
struct watch;

#define KEEPER_LISTEN_MAX 8
#define KEEPER_BUCKETS    1024

struct keeper_settings {
	const char *state_dir;
	const char *instance;           /* default type */
	const char *disk_quota;         /* see quota_open() */
	unsigned max_sandboxes, parked;
	bool keep_sandboxes;            /* a stop leaves them alive */
	bool sleeps;                    /* trees outlive their processes: idle, stopped or crashed, a sandbox falls asleep */
	struct reserves reserves;
	uid_t front_uid;
	gid_t front_gid;
	int config_fd;                  /* for the front */
	int serve_fd;                   /* to `tombolo serve`: a line when ready; its end is ours, too */
	int listen_fds[KEEPER_LISTEN_MAX];
	size_t listen_count;
};

/* See sandbox.h. */
enum sandbox_state {
	SANDBOX_WAITING,
	SANDBOX_PLACING,
	SANDBOX_BINDING,
	SANDBOX_PARKED,
	SANDBOX_CLAIMING,
	SANDBOX_ADOPTING,
	SANDBOX_LIVE,
	SANDBOX_DYING,
	SANDBOX_CLEARING,
	SANDBOX_ASLEEP,
};
#define SANDBOX_STATES 10

enum keeper_phase {
	KEEPER_STARTING,        /* reading the records */
	KEEPER_SWEEPING,        /* waiting, a moment, for the agents to answer */
	KEEPER_SERVING,
	KEEPER_STOPPING,        /* first the front, */
	KEEPER_EMPTYING,        /* then the sandboxes */
};

struct keeper {
	const struct keeper_settings *settings;
	struct loop *loop;
	enum keeper_phase phase;
	char boot[UUID_LEN + 1];        /* this boot's name, for records */
	struct state state;
	struct image image;
	struct cgroups *cgroups;
	struct quota *quota;
	struct blocks *blocks;
	struct trash *trash;
	struct parking *parking;
	struct slots *slots;
	struct front *front;
	struct issued *issued;
	struct lost *lost;
	struct syncing *syncing;
	struct admission admission;
	struct watch *serve_watch;
	struct timer *sweep_due;        /* who has not answered by then is served without */
	bool keep;                      /* while stopping: leave the sandboxes alive */
	int result;                     /* why the loop ended: 0, or negative when serving was not possible */

	struct sandbox *buckets[KEEPER_BUCKETS];        /* by hash of the id */
	unsigned in_state[SANDBOX_STATES];
	struct sandbox *waiting, **waiting_last;        /* the line for an agent and a slot */
	struct ahead ahead;
};

int keeper_new(const struct keeper_settings *settings, struct keeper **ret, struct err *e);

/* Serves until it is told to stop. Negative: it could not even begin (the log says why). */
int keeper_run(struct keeper *k);

/* After keeper_run(): lets the trash empty itself for a while and gives back what outlives a process. */
void keeper_end(struct keeper *k);

/* Something became available, or somebody got in line: hands out what there is, and has more made. */
void keeper_pump(struct keeper *k);

/* A sandbox changed its state: the next step of starting or stopping may be due. */
void keeper_progress(struct keeper *k);

/* Ends the server's work: first the front, then, unless KEEP, all sandboxes. */
void keeper_stop(struct keeper *k, bool keep);

/* ---- the sandboxes there are ---- */

/* Those that are nobody's yet have the id "" and are several: the newest, then the one before S. */
struct sandbox *keeper_find(const struct keeper *k, const char *id);
struct sandbox *keeper_find_next(const struct sandbox *s);
void keeper_add(struct keeper *k, struct sandbox *s);
void keeper_drop(struct keeper *k, struct sandbox *s);

/* How many there are in whatever state but asleep, and how many that are not on their way out. */
unsigned keeper_count(const struct keeper *k);
unsigned keeper_count_staying(const struct keeper *k);

/* EACH may end sandboxes, but free none. */
void keeper_each(struct keeper *k, void (*each)(struct sandbox *s, void *ctx), void *ctx);
