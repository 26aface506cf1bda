#include "keeper/limits.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "isolation/cgroup.h"
#include "isolation/instance.h"
#include "isolation/quota.h"
#include "keeper/du.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/parts.h"
#include "keeper/sandbox.h"
#include "loop/loop.h"
#include "wire/link.h"

#define RETRY_MS 10

static void on_made(void *ctx);
static void on_removed(void *ctx);

_Static_assert(LIMITS_FDS == LIMITS_MEMORY_EVENTS + CGROUP_COUNTERS, "the counters are the last descriptors");

int limits_of_record(const struct record *rec, struct limits *ret)
{
	struct limits limits;
	int r = instance_limits(rec->instance, &limits);

	if (r < 0) return r;
	if (rec->own.memory_bytes) limits.memory_bytes = rec->own.memory_bytes;
	if (rec->own.pids) limits.pids = rec->own.pids;
	if (rec->own.cpu_milli) limits.cpu_milli = rec->own.cpu_milli;
	if (rec->own.disk_bytes) limits.disk_bytes = rec->own.disk_bytes;
	*ret = limits;
	return 0;
}

/* ---- on work threads ---- */

static void make(void *ctx)
{
	struct sandbox *s = ctx;
	struct limits limits;
	int r;

	s->work_err = ERR_NONE;
	r = limits_of_record(&s->record, &limits);
	if (r < 0)
		r = err_say(&s->work_err, r, "there is no instance type '%s' any more", s->record.instance);
	else
		r = cgroup_make(s->keeper->cgroups, s->record.run, &limits, s->record.base_id, s->limits.fds,
				&s->work_err);
	if (r == 0)
		cgroup_counters_open(s->keeper->cgroups, s->record.run, s->limits.fds + LIMITS_MEMORY_EVENTS);
	s->work_err.code = r;
}

int limits_adapt(struct sandbox *s, struct err *e)
{
	int fds[3] = {-1, -1, -1}, r;
	struct limits limits;

	r = limits_of_record(&s->record, &limits);
	if (r == 0) r = cgroup_make(s->keeper->cgroups, s->record.run, &limits, s->record.base_id, fds, e);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_close(fds[i]);
	return r;
}

static void remove_cgroups(void *ctx)
{
	struct sandbox *s = ctx;

	s->work_err.code = cgroup_remove(s->keeper->cgroups, s->record.run);
}

static void begin(struct sandbox *s, enum limits_phase phase)
{
	s->limits.phase = phase;
	s->working++;
	if (phase == LIMITS_MAKING) loop_work(s->keeper->loop, make, on_made, s);
	else loop_work(s->keeper->loop, remove_cgroups, on_removed, s);
}

/* ---- back on the loop ---- */

/* Those that are open, one after the other; which they are, as bits. */
static uint32_t fds_that_are(const int fds[LIMITS_FDS], int out[LIMITS_FDS], size_t *ret_count)
{
	uint32_t present = 0;

	*ret_count = 0;
	for (unsigned i = 0; i < LIMITS_FDS; i++) {
		if (fds[i] < 0) continue;
		out[(*ret_count)++] = fds[i];
		present |= 1u << i;
	}
	return present;
}

static void tell_agent(struct sandbox *s)
{
	struct limits limits = {0};
	struct msg_limits m = {
		.error = -s->work_err.code,
		.text = wire_text_of(s->work_err.text),
		.cgroup_version = (uint8_t)cgroups_version(s->keeper->cgroups),
	};
	int fds[LIMITS_FDS];
	size_t count = 0;

	/* Without descriptors it only brings the numbers. */
	if (s->work_err.code == 0) m.present = fds_that_are(s->limits.fds, fds, &count);
	(void)limits_of_record(&s->record, &limits);
	m.memory_bytes = limits.memory_bytes;
	m.pids = limits.pids;
	m.cpu_milli = limits.cpu_milli;
	if (LINK_SEND(s->bond, 0, limits, &m, fds, count) < 0)
		ending_begin(s, GONE_DIED, "its agent does not read");
}

void limits_tell_numbers(struct sandbox *s)
{
	tell_agent(s);
}

static void on_made(void *ctx)
{
	struct sandbox *s = ctx;

	s->working--;
	s->limits.phase = s->work_err.code == 0 ? LIMITS_MADE : LIMITS_NONE;
	if (s->work_err.code < 0)
		log_event(LOG_ERROR, "limits_not_made", "id", s->record.id, "why", s->work_err.text, NULL);
	if (s->state == SANDBOX_LIVE || s->state == SANDBOX_BINDING) tell_agent(s);
	for (size_t i = 0; i < LIMITS_FDS && s->work_err.code == 0; i++)
		s->limits.fds[i] = fd_close(s->limits.fds[i]);
	if (s->state == SANDBOX_BINDING) s->limits.then(s);
	ending_advance(s);
}

static void on_retry(void *ctx)
{
	begin(ctx, LIMITS_REMOVING);
}

static void on_removed(void *ctx)
{
	struct sandbox *s = ctx;

	s->working--;
	if (s->state == SANDBOX_LIVE && s->work_err.code == -EBUSY) {
		sandbox_set_timer(s, on_retry, RETRY_MS);
		return;
	}
	s->limits.phase = LIMITS_NONE;
	if (s->state == SANDBOX_LIVE && s->limits.wanted) {
		s->limits.wanted = false;
		begin(s, LIMITS_MAKING);
	}
	ending_advance(s);
}

/* ---- what the agent says ---- */

void limits_want(struct sandbox *s, void (*then)(struct sandbox *s))
{
	s->limits.then = then;
	switch (s->limits.phase) {
	case LIMITS_NONE:
	case LIMITS_MADE: /* the answer went to a keeper that is dead: make them ours */
		begin(s, LIMITS_MAKING);
		return;
	case LIMITS_MAKING: return; /* the answer is on its way */
	case LIMITS_REMOVING: s->limits.wanted = true; return;
	}
}

void limits_idle(struct sandbox *s)
{
	if (s->limits.phase == LIMITS_MADE) begin(s, LIMITS_REMOVING);
}

/* ---- what the front asks ---- */

static uint64_t disk_used(const struct sandbox *s)
{
	auto_close int dir_fd = s->keeper->du ? -1 : sandbox_open_dir(s);

	if (s->keeper->du) return du_bytes(s->keeper->du, s->record.run);
	return dir_fd < 0 ? 0 : quota_used(s->keeper->quota, dir_fd);
}

void limits_tell_usage(struct sandbox *s)
{
	struct usage usage = {0};
	struct limits limits = {0};
	struct msg_usage m = {.id = wire_text_of(s->record.id), .known = 1};

	if (s->limits.phase == LIMITS_MADE) (void)cgroup_usage(s->keeper->cgroups, s->record.run, &usage);
	(void)limits_of_record(&s->record, &limits);
	m.memory_bytes = usage.memory_bytes;
	m.memory_limit = limits.memory_bytes;
	m.pids = usage.pids;
	m.pids_limit = limits.pids;
	m.cpu_milli = limits.cpu_milli;
	m.disk_limit = limits.disk_bytes;
	m.oom_kills = usage.oom_kills;
	m.pids_refused = usage.pids_refused;
	m.disk_enforced = quota_is_enforced(s->keeper->quota);
	m.disk_backend = wire_text_of(quota_name(s->keeper->quota));
	m.inodes_limit = m.disk_enforced ? limits_inodes(limits.disk_bytes) : 0;
	m.disk_bytes = disk_used(s);
	front_usage(s->keeper->front, &m);
}
