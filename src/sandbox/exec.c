/* exec.c - one command: its opening, its output under credit, its stdin under the agent's credit, its end. */
#include "sandbox/operations.h"

#include <errno.h>

#include "base/mem.h"
#include "sandbox/agent_link.h"
#include "sandbox/operation_end.h"

struct exec {
	struct channel channel;
	const struct exec_events *events;
	void *ctx;
	bool background;
	bool started;
	uint32_t allowed;  /* bytes of output that the agent may still send */
	uint32_t consumed; /* bytes dealt with and not yet given back */
	char *input;       /* NULL: stdin is /dev/null, or all of it was sent */
	size_t input_len, input_at;
	uint32_t input_allowed;
};

static void exec_free(struct exec *x)
{
	channel_close(&x->channel);
	free(x->input);
	free(x);
}

/* ---- stdin ---- */

static void send_input(struct exec *x)
{
	if (!x->input) return;
	while (x->input_at < x->input_len && x->input_allowed) {
		size_t n =
			MIN(MIN(x->input_len - x->input_at, (size_t)WIRE_DATA_MAX), (size_t)x->input_allowed);
		struct iovec part = {.iov_base = x->input + x->input_at, .iov_len = n};

		agent_link_sent(x->channel.link, link_send_data(agent_link_wire(x->channel.link),
								x->channel.number, STREAM_IN, &part, 1));
		x->input_at += n;
		x->input_allowed -= (uint32_t)n;
	}
	if (x->input_at < x->input_len) return;
	struct msg_eof eof = {.stream = STREAM_IN};
	CHANNEL_SEND(&x->channel, eof, &eof);
	free(x->input);
	x->input = NULL;
}

/* ---- what the agent says ---- */

static int on_opened(struct exec *x, const struct frame *f)
{
	struct msg_opened m;

	if (msg_opened_parse(f, &m) < 0 || x->started) return -EPROTO;
	x->started = true;
	x->events->on_started(x->ctx, m.process_id.at, m.pid);
	return 0;
}

static int on_data(struct exec *x, const struct frame *f)
{
	struct msg_data m;

	if (msg_data_parse(f, &m) < 0 || !x->started) return -EPROTO;
	if (m.stream != STREAM_OUT && m.stream != STREAM_ERR) return -EPROTO;
	/* More than was paid for would pile up in our memory. */
	if (m.bytes.len > x->allowed) return -EPROTO;
	x->allowed -= m.bytes.len;
	x->events->on_output(x->ctx, (enum wire_stream)m.stream, m.bytes.at, m.bytes.len);
	return 0;
}

static int on_credit(struct exec *x, const struct frame *f)
{
	struct msg_credit m;

	if (msg_credit_parse(f, &m) < 0) return -EPROTO;
	if (m.bytes > WIRE_SPILL_MAX || x->input_allowed > WIRE_SPILL_MAX) return -EPROTO;
	x->input_allowed += m.bytes;
	send_input(x);
	return 0;
}

static int on_end(struct exec *x, const struct frame *f)
{
	struct operation_end end;

	if (operation_end_parse(f, &end) < 0) return -EPROTO;
	/* What is only started is DONE then; what is waited for has a better reason. */
	if (end.reason == END_DONE && (!x->background || !x->started)) return -EPROTO;
	if (!x->started && end.reason < END_DELETED) return -EPROTO;
	channel_close(&x->channel);
	x->events->on_end(x->ctx, &end);
	exec_free(x);
	return 0;
}

static int on_message(struct channel *c, const struct frame *f, int *fds, size_t fd_count)
{
	struct exec *x = container_of(c, struct exec, channel);

	(void)fds, (void)fd_count;
	switch (f->type) {
	case MSG_opened: return on_opened(x, f);
	case MSG_data: return on_data(x, f);
	case MSG_credit: return on_credit(x, f);
	case MSG_end: return on_end(x, f);
	default: return message_name(f->type) ? -EPROTO : 0; /* a newer agent may say more than we know */
	}
}

static void on_lost(struct channel *c, enum end_reason reason, const char *text)
{
	struct exec *x = container_of(c, struct exec, channel);
	struct operation_end end = operation_end_lost(reason, text);

	x->events->on_end(x->ctx, &end);
	exec_free(x);
}

static const struct channel_class exec_class = {.on_message = on_message, .on_lost = on_lost};

/* ---- the caller's side ---- */

static int keep_input(struct exec *x, const struct exec_spec *spec)
{
	if (!spec->input) return 0;
	x->input = malloc(spec->input_len + 1);
	if (!x->input) return -ENOMEM;
	memcpy(x->input, spec->input, spec->input_len);
	x->input_len = spec->input_len;
	return 0;
}

int exec_start(struct agent_link *link, const struct exec_spec *spec, const struct exec_events *events,
	       void *ctx, struct exec **ret)
{
	struct exec *x = mem_new(sizeof *x);
	struct msg_open_exec m = {
		.flags = (spec->direct ? EXEC_DIRECT : 0) | (spec->input ? EXEC_STDIN : 0) |
			 (spec->background ? EXEC_BACKGROUND : 0),
		.uid = spec->uid,
		.timeout_ms = spec->timeout_ms,
		.grace_ms = spec->grace_ms,
		.window = EXEC_WINDOW,
		.cwd = wire_text_of(spec->cwd),
		.argv = {.items = spec->argv, .count = spec->argc},
		.env = {.items = spec->env, .count = spec->env_count},
		.session = wire_text_of(spec->session ? spec->session : ""),
	};

	x->events = events;
	x->ctx = ctx;
	x->background = spec->background;
	x->allowed = EXEC_WINDOW;
	int r = channel_open(&x->channel, link, &exec_class);
	if (r == 0) r = keep_input(x, spec);
	if (r == 0) r = CHANNEL_SEND_LARGE(&x->channel, open_exec, &m);
	if (r < 0) {
		exec_free(x);
		return r;
	}
	send_input(x); /* an empty one is at its end already */
	*ret = x;
	return 0;
}

void exec_consumed(struct exec *x, size_t len)
{
	x->consumed += (uint32_t)len;
	/* In large steps: a message for every few bytes would cost more than they do. */
	if (x->consumed < EXEC_WINDOW / 2) return;
	struct msg_credit m = {.bytes = x->consumed};
	x->allowed += x->consumed;
	x->consumed = 0;
	if (x->channel.link) CHANNEL_SEND(&x->channel, credit, &m);
}

struct exec *exec_detach(struct exec *x, bool kill)
{
	if (!x) return NULL;
	channel_reset(&x->channel, kill);
	exec_free(x);
	return NULL;
}
