/*
 * parts.h - what the files of this room share: the keeper's parts, and the one notice by which they tell it
 * that something changed. Who stands above whom: keeper.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"
#include "isolation/slot.h"
#include "keeper/admission.h"
#include "keeper/state.h"

struct ahead;
struct blocks;
struct cgroups;
struct du;
struct front;
struct issued;
struct loop;
struct lost;
struct parking;
struct quota;
struct sandbox;
struct slots;
struct syncing;
struct timer;
struct trash;
struct watch;

#define KEEPER_LISTEN_MAX 8
#define KEEPER_BUCKETS    1024

struct keeper_settings {
	const char *state_dir;
	const char *instance;   /* default type */
	const char *disk_quota; /* see quota_open() */
	unsigned max_sandboxes, parked;
	bool keep_sandboxes; /* a stop leaves them alive */
	bool sleeps; /* trees outlive their processes: idle, stopped or crashed, a sandbox falls asleep */
	struct reserves reserves;
	uid_t front_uid;
	gid_t front_gid;
	int config_fd; /* for the front */
	int serve_fd;  /* to `tombolo serve`: a line when ready; its end is ours, too */
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
	KEEPER_STARTING, /* reading the records */
	KEEPER_SWEEPING, /* waiting, a moment, for the agents to answer */
	KEEPER_SERVING,
	KEEPER_STOPPING, /* first the front, */
	KEEPER_EMPTYING, /* then the sandboxes */
};

struct keeper {
	const struct keeper_settings *settings;
	struct loop *loop;
	enum keeper_phase phase;
	char boot[UUID_LEN + 1]; /* this boot's name, for records */
	struct state state;
	struct image image;
	struct cgroups *cgroups;
	struct quota *quota;
	struct blocks *blocks;
	struct trash *trash;
	struct du *du; /* NULL: the quota counts by itself */
	struct parking *parking;
	struct slots *slots;
	struct front *front;
	struct issued *issued;
	struct lost *lost;
	struct syncing *syncing;
	struct admission admission;
	struct watch *serve_watch;
	struct timer *sweep_due; /* who has not answered by then is served without */
	bool keep;               /* while stopping: leave the sandboxes alive */
	int result;              /* why the loop ended: 0, or negative when serving was not possible */

	struct sandbox *buckets[KEEPER_BUCKETS]; /* see population.h */
	unsigned in_state[SANDBOX_STATES];
	struct sandbox *waiting, **waiting_last; /* see line.h */
	struct ahead *ahead;
	bool ahead_failed; /* what was to be made ahead could not be: see ahead.h */

	void (*on_changed)(void *keeper);
	bool change_told; /* it will be called on the loop's next turn */
};

/*
 * Something became free, somebody got in line, a sandbox changed its state: what follows from it for all (who
 * is served next, whether a start or a stop is through) is decided above, on the loop's next turn, once for
 * all that was told.
 */
void keeper_changed(struct keeper *k);
