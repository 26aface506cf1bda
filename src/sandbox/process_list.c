#include "sandbox/process_list.h"

#include <errno.h>

#include "base/mem.h"
#include "sandbox/agent_link.h"
#include "sandbox/operation_end.h"

struct process_list {
	struct channel channel;
	const struct process_list_events *events;
	void *ctx;
};

static int on_process(struct process_list *list, const struct frame *f)
{
	struct msg_process p;

	if (msg_process_parse(f, &p) < 0) return -EPROTO;
	if (p.state > PROCESS_LOST || p.code < 0 || p.code > 255 || p.signo < 0 || p.signo > 64)
		return -EPROTO;
	if (p.started_ms > WALL_MS_MAX || p.ended_ms > WALL_MS_MAX || p.kind > KIND_TERMINAL) return -EPROTO;
	list->events->on_process(list->ctx, &p);
	return 0;
}

static int on_end(struct process_list *list, const struct frame *f)
{
	struct operation_end end;

	if (operation_end_parse(f, &end) < 0) return -EPROTO;
	channel_close(&list->channel);
	list->events->on_end(list->ctx, &end);
	free(list);
	return 0;
}

static int on_message(struct channel *c, const struct frame *f, int *fds, size_t fd_count)
{
	struct process_list *list = container_of(c, struct process_list, channel);

	(void)fds, (void)fd_count;
	switch (f->type) {
	case MSG_process: return on_process(list, f);
	case MSG_end: return on_end(list, f);
	default: return message_name(f->type) ? -EPROTO : 0;
	}
}

static void on_lost(struct channel *c, enum end_reason reason, const char *text)
{
	struct process_list *list = container_of(c, struct process_list, channel);
	struct operation_end end = operation_end_lost(reason, text);

	list->events->on_end(list->ctx, &end);
	free(list);
}

static const struct channel_class list_class = {.on_message = on_message, .on_lost = on_lost};

struct process_list *process_list_start(struct agent_link *link, enum process_kind kind, const char *name,
					const struct process_list_events *events, void *ctx)
{
	struct process_list *list = mem_new(sizeof *list);
	struct msg_open_list m = {.kind = (uint8_t)kind, .name = name_sent(name)};

	list->events = events;
	list->ctx = ctx;
	if (channel_open(&list->channel, link, &list_class) < 0) {
		free(list);
		return NULL;
	}
	CHANNEL_SEND(&list->channel, open_list, &m);
	return list;
}

struct process_list *process_list_drop(struct process_list *list)
{
	if (!list) return NULL;
	channel_reset(&list->channel, false);
	free(list);
	return NULL;
}
