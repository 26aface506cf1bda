#include "keeper/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "isolation/cgroup.h"
#include "isolation/image_host.h"
#include "isolation/instance.h"
#include "isolation/quota.h"
#include "keeper/ahead.h"
#include "keeper/blocks.h"
#include "keeper/du.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/issued.h"
#include "keeper/lost.h"
#include "keeper/parking.h"
#include "keeper/placing.h"
#include "keeper/population.h"
#include "keeper/requests.h"
#include "keeper/sandbox.h"
#include "keeper/slots.h"
#include "keeper/sweep.h"
#include "keeper/syncing.h"
#include "keeper/trash.h"
#include "loop/loop.h"

#define FRONT_PATIENCE_MS 3000
#define TRASH_PATIENCE_MS 5000
#define SWEEP_WAIT_MS     250 /* hundreds of agents answer within it */

/* ---- the line ---- */

static void refuse_first(struct keeper *k, const struct err *e)
{
	if (k->waiting) ending_refuse(k->waiting, e);
}

static void serve_line(struct keeper *k)
{
	struct err e = {.code = -ENOSPC, .text = "this and other servers use every range of user ids"};
	unsigned waiting;
	int r;

	if (k->phase != KEEPER_SERVING) return;
	ahead_refill(k);
	while (k->waiting && slots_ready(k->slots) && parking_ready(k->parking))
		placing_begin(k->waiting);
	ahead_tell(k);
	/* While a sandbox is on its way up, the background keeps still for it, unless others wait. */
	waiting = k->in_state[SANDBOX_WAITING];
	if (!waiting && k->in_state[SANDBOX_PLACING] + k->in_state[SANDBOX_BINDING]) return;
	parking_refill(k->parking, waiting);
	r = slots_refill(k->slots, waiting);
	while (r == -ENOSPC && k->waiting)
		refuse_first(k, &e);
}

static void on_supply(void *ctx)
{
	keeper_changed(ctx);
}

static void on_agent_failed(void *ctx, const struct err *e)
{
	/* A zygote that died is started again: whoever waits has time. */
	if (e->code != -EPIPE) refuse_first(ctx, e);
}

/* ---- beginning and end ---- */

static void begin_serving(struct keeper *k)
{
	struct err e = ERR_NONE;

	k->phase = KEEPER_SERVING;
	if (front_start(k->front, &e) == 0) {
		keeper_changed(k);
		return;
	}
	log_event(LOG_ERROR, "front_not_started", "why", e.text, NULL);
	k->result = e.code;
	keeper_stop(k, true);
}

/* An agent that hangs costs its own sandbox some time, and the others next to none. */
static void on_sweep_due(void *ctx)
{
	struct keeper *k = ctx;

	if (k->phase == KEEPER_SWEEPING) begin_serving(k);
}

static void wait_for_agents(struct keeper *k)
{
	k->sweep_due = timer_new(k->loop, on_sweep_due, k);
	timer_set(k->sweep_due, SWEEP_WAIT_MS);
}

static void each_end(struct sandbox *s, void *ctx)
{
	struct err e = {.code = -ECANCELED, .text = "the server is stopping"};

	(void)ctx;
	if (s->state == SANDBOX_ASLEEP) return;
	if (s->state == SANDBOX_WAITING) ending_refuse(s, &e);
	else ending_begin(s, GONE_REMOVED, "the server is stopping");
}

static void on_front_stopped_then(void *ctx)
{
	struct keeper *k = ctx;

	k->phase = KEEPER_EMPTYING;
	if (!k->keep) population_each(k, each_end, NULL);
	keeper_changed(k);
}

void keeper_stop(struct keeper *k, bool keep)
{
	if (k->phase >= KEEPER_STOPPING) return;
	k->phase = KEEPER_STOPPING;
	k->keep = keep;
	slots_stop(k->slots);
	front_stop(k->front, FRONT_PATIENCE_MS, on_front_stopped_then);
}

static void advance_phase(struct keeper *k)
{
	switch (k->phase) {
	case KEEPER_STARTING:
	case KEEPER_SERVING:
	case KEEPER_STOPPING: return;
	case KEEPER_SWEEPING:
		if (!k->in_state[SANDBOX_ADOPTING]) begin_serving(k);
		else if (!k->sweep_due) wait_for_agents(k);
		return;
	case KEEPER_EMPTYING:
		if (k->keep || (population_count(k) == 0 && !slots_busy(k->slots))) loop_stop(k->loop);
		return;
	}
}

static void on_changed(void *ctx)
{
	serve_line(ctx);
	advance_phase(ctx);
}

/* No change that has more prepared: the next one would fail, too. But a stop may wait for just this. */
static void on_slot_failed(void *ctx, const struct err *e)
{
	refuse_first(ctx, e);
	advance_phase(ctx);
}

static void on_serve_gone(void *ctx, unsigned events)
{
	struct keeper *k = ctx;

	(void)events;
	watch_want(k->serve_watch, 0);
	log_event(LOG_WARN, "supervisor_gone", NULL);
	keeper_stop(k, true);
}

static void tell_quota(const struct quota *q)
{
	if (quota_fault(q)) log_event(LOG_WARN, "disk_limits_off", "why", quota_fault(q), NULL);
	else log_event(LOG_INFO, "disk_limits", "by", quota_name(q), NULL);
}

#define IMAGES_PATH_SIZE (sizeof((struct state *)0)->path + 16)

static void images_path(const struct keeper *k, char path[static IMAGES_PATH_SIZE])
{
	(void)snprintf(path, IMAGES_PATH_SIZE, "%s/images/host", k->state.path);
}

/* Sandboxes live on the skeleton they were born with; so would slots, but none is made yet. */
static void forget_old_images(struct keeper *k)
{
	struct err e = ERR_NONE;
	char images[IMAGES_PATH_SIZE];

	if (population_count(k)) return;
	images_path(k, images);
	if (image_host_forget_others(images, &k->image, &e) < 0)
		log_event(LOG_WARN, "old_image_stays", "why", e.text, NULL);
}

static int open_parts(struct keeper *k, struct err *e)
{
	char images[IMAGES_PATH_SIZE];
	int r = record_boot(k->boot);

	if (r < 0) return err_set(e, r, "read this boot's name");
	r = state_open(k->settings->state_dir, &k->state, e);
	if (r < 0) return r;
	images_path(k, images);
	r = image_host_open(images, &k->image, e);
	if (r == 0) r = cgroups_open(k->state.name, &k->cgroups, e);
	if (r == 0) r = blocks_open(BLOCKS_DIR, k->state.path, &k->blocks, e);
	if (r == 0) r = trash_new(k->state.trash_fd, &k->trash, e);
	if (r == 0) r = quota_open(k->settings->disk_quota, k->state.images_fd, &k->quota, e);
	if (r == 0) tell_quota(k->quota);
	if (r == 0 && !quota_is_enforced(k->quota)) r = du_new(k->state.sandboxes_fd, &k->du, e);
	if (r == 0) r = issued_open(k->state.dir_fd, &k->issued, e);
	k->lost = lost_new();
	k->syncing = syncing_new(k->loop);
	k->admission = (struct admission){.reserves = k->settings->reserves, .dir_fd = k->state.dir_fd};
	return r;
}

static int start_parts(struct keeper *k, struct err *e)
{
	struct parking_events agents = {.on_ready = on_supply, .on_failed = on_agent_failed, .ctx = k};
	struct slots_events slots = {.on_ready = on_supply, .on_failed = on_slot_failed, .ctx = k};
	struct limits limits = {0};
	int r = sweep(k, e);

	(void)instance_limits(k->settings->instance, &limits);
	if (r == 0) forget_old_images(k);
	if (r == 0) r = parking_new(k->loop, k->cgroups, k->settings->parked, agents, &k->parking, e);
	if (r == 0)
		k->slots = slots_new(k->loop, &k->state, &k->image, k->blocks, k->quota, limits.disk_bytes,
				     k->settings->parked, slots);
	return r;
}

int keeper_new(const struct keeper_settings *settings, struct keeper **ret, struct err *e)
{
	struct keeper *k = mem_new(sizeof *k);
	int r;

	k->settings = settings;
	k->waiting_last = &k->waiting;
	k->on_changed = on_changed;
	r = loop_new(&k->loop, e);
	if (r == 0) r = open_parts(k, e);
	if (r == 0) {
		k->front = front_new(k, requests());
		k->ahead = ahead_new(k);
		r = start_parts(k, e);
	}
	if (r < 0) return r;
	(void)fd_set_nonblocking(settings->serve_fd);
	k->serve_watch = watch_new(k->loop, settings->serve_fd, on_serve_gone, k);
	watch_want(k->serve_watch, WATCH_IN);
	*ret = k;
	return 0;
}

int keeper_run(struct keeper *k)
{
	k->phase = KEEPER_SWEEPING;
	keeper_changed(k);
	loop_run(k->loop);
	return k->result;
}

void keeper_end(struct keeper *k)
{
	ahead_free(k->ahead);
	parking_free(k->parking);
	du_free(k->du);
	if (k->keep) return;
	slots_free(k->slots);
	trash_put_all(k->trash, k->state.spare_fd);
	trash_free(k->trash, TRASH_PATIENCE_MS);
	blocks_free(k->blocks);
	quota_free(k->quota);
	cgroups_free(k->cgroups);
}
