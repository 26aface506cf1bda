#include "keeper/requests.h"

#include <errno.h>
#include <string.h>

#include "keeper/ahead.h"
#include "keeper/bond.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/issued.h"
#include "keeper/limits.h"
#include "keeper/parts.h"
#include "keeper/population.h"
#include "keeper/sandbox.h"
#include "keeper/wishes.h"
#include "wire/message.h"

static void each_introduce(struct sandbox *s, void *front)
{
	/* An agent that has not answered yet costs only those who wait for it. */
	if (s->state == SANDBOX_ASLEEP || (s->state == SANDBOX_ADOPTING && s->record.id[0]))
		front_asleep(front, s);
	if (s->state == SANDBOX_LIVE && bond_attach_front(s) < 0)
		ending_begin(s, GONE_DIED, "its agent takes no connection");
}

static void on_started(struct keeper *k)
{
	population_each(k, each_introduce, k->front);
}

static int on_create(struct keeper *k, const struct frame *frame)
{
	struct msg_create m;

	if (msg_create_parse(frame, &m) < 0) return -EPROTO;
	wishes_create(k, &m);
	return 0;
}

static int on_remove(struct keeper *k, const struct frame *frame)
{
	struct msg_remove m;

	if (msg_remove_parse(frame, &m) < 0) return -EPROTO;
	wishes_remove(k, &m.id);
	return 0;
}

static int on_sleep(struct keeper *k, const struct frame *frame)
{
	struct msg_sleep m;

	if (msg_sleep_parse(frame, &m) < 0) return -EPROTO;
	wishes_sleep(k, &m.id);
	return 0;
}

static int on_issue(struct keeper *k, const struct frame *frame)
{
	struct issued_wish wish = {0};
	struct msg_issue m;

	if (msg_issue_parse(frame, &m) < 0) return -EPROTO;
	/* An instance type that is none is refused when the sandbox is made. */
	if (!id_is_sandbox(m.id.at, m.id.len) || m.instance.len > INSTANCE_MAX) return -EPROTO;
	memcpy(wish.id, m.id.at, m.id.len);
	memcpy(wish.instance, m.instance.at, m.instance.len);
	wish.memory_bytes = m.memory_bytes;
	wish.pids = m.pids;
	wish.cpu_milli = m.cpu_milli;
	wish.disk_bytes = m.disk_bytes;
	issued_add(k->issued, &wish);
	return 0;
}

static int on_inspect(struct keeper *k, const struct frame *frame)
{
	struct msg_usage unknown = {.known = 0};
	struct msg_inspect m;
	struct sandbox *s;

	if (msg_inspect_parse(frame, &m) < 0) return -EPROTO;
	s = population_find(k, m.id.at);
	unknown.id = m.id;
	if (s && s->state == SANDBOX_LIVE) limits_tell_usage(s);
	else front_usage(k->front, &unknown);
	return 0;
}

static int on_park(struct keeper *k, const struct frame *frame)
{
	struct msg_park m;

	if (msg_park_parse(frame, &m) < 0) return -EPROTO;
	ahead_wish(k, m.want);
	return 0;
}

static int on_request(struct keeper *k, const struct frame *frame)
{
	switch (frame->type) {
	case MSG_create: return on_create(k, frame);
	case MSG_remove: return on_remove(k, frame);
	case MSG_inspect: return on_inspect(k, frame);
	case MSG_sleep: return on_sleep(k, frame);
	case MSG_issue: return on_issue(k, frame);
	case MSG_park: return on_park(k, frame);
	default: return -EPROTO;
	}
}

struct front_events requests(void)
{
	return (struct front_events){.on_started = on_started, .on_request = on_request};
}
