/* process_signal.c - a signal to one process or terminal, and the news that it arrived. */
#include "sandbox/process.h"

#include <errno.h>

#include "base/mem.h"
#include "sandbox/agent_link.h"
#include "sandbox/operation_end.h"

struct process_signal {
	struct channel channel;
	on_signalled *on_end;
	void *ctx;
};

static int on_message(struct channel *c, const struct frame *f, int *fds, size_t fd_count)
{
	struct process_signal *s = container_of(c, struct process_signal, channel);
	struct operation_end end;

	(void)fds, (void)fd_count;
	if (f->type != MSG_end) return message_name(f->type) ? -EPROTO : 0;
	if (operation_end_parse(f, &end) < 0) return -EPROTO;
	if (end.reason != END_DONE && end.reason != END_FAILED) return -EPROTO;
	channel_close(&s->channel);
	s->on_end(s->ctx, &end);
	free(s);
	return 0;
}

static void on_lost(struct channel *c, enum end_reason reason, const char *text)
{
	struct process_signal *s = container_of(c, struct process_signal, channel);
	struct operation_end end = operation_end_lost(reason, text);

	s->on_end(s->ctx, &end);
	free(s);
}

static const struct channel_class signal_class = {.on_message = on_message, .on_lost = on_lost};

struct process_signal *process_signal_start(struct agent_link *link, enum process_kind kind, const char *name,
					    int signo, enum signal_how how, on_signalled *on_end, void *ctx)
{
	struct process_signal *s = mem_new(sizeof *s);
	struct msg_open_signal m = {
		.kind = (uint8_t)kind, .name = name_sent(name), .signo = signo, .how = (uint8_t)how};

	s->on_end = on_end;
	s->ctx = ctx;
	if (channel_open(&s->channel, link, &signal_class) < 0) {
		free(s);
		return NULL;
	}
	CHANNEL_SEND(&s->channel, open_signal, &m);
	return s;
}

struct process_signal *process_signal_drop(struct process_signal *s)
{
	struct msg_reset m = {0};

	if (!s) return NULL;
	if (s->channel.link) CHANNEL_SEND(&s->channel, reset, &m);
	channel_close(&s->channel);
	free(s);
	return NULL;
}
