/* terminal.c - starts a terminal, and what somebody at its keyboard does. Its output: follow.c. */
#include "sandbox/terminal.h"

#include <errno.h>

#include "base/mem.h"
#include "sandbox/follow_private.h"

int terminal_start(struct agent_link *link, const struct terminal_spec *spec,
		   const struct follow_events *events, void *ctx, struct follow **ret)
{
	struct follow *f = follow_new(link, events, ctx);
	struct msg_open_terminal m = {
		.flags = spec->flags,
		.name = wire_text_of(spec->name),
		.uid = spec->uid,
		.cols = spec->cols,
		.rows = spec->rows,
		.window = FOLLOW_WINDOW,
		.cwd = wire_text_of(spec->cwd),
		.argv = {.items = spec->argv, .count = spec->argc},
		.env = {.items = spec->env, .count = spec->env_count},
		.session = wire_text_of(spec->session ? spec->session : ""),
	};
	int r;

	if (!f) return -EMFILE;
	f->only_started = spec->flags & TERMINAL_DETACHED;
	r = CHANNEL_SEND_LARGE(&f->channel, open_terminal, &m);
	if (r < 0) {
		follow_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

size_t terminal_room(const struct follow *f)
{
	return f->input_allowed;
}

size_t terminal_input(struct follow *f, const void *bytes, size_t len)
{
	size_t sent = 0;

	if (!f->channel.link) return len;
	while (sent < len && f->input_allowed) {
		size_t n = MIN(MIN(len - sent, (size_t)WIRE_DATA_MAX), (size_t)f->input_allowed);
		struct iovec part = {.iov_base = (char *)bytes + sent, .iov_len = n};

		agent_link_sent(f->channel.link, link_send_data(agent_link_wire(f->channel.link),
								f->channel.number, STREAM_IN, &part, 1));
		f->input_allowed -= (uint32_t)n;
		sent += n;
	}
	return sent;
}

void terminal_resize(struct follow *f, uint16_t cols, uint16_t rows)
{
	struct msg_resize m = {.cols = cols, .rows = rows};

	if (f->channel.link) CHANNEL_SEND(&f->channel, resize, &m);
}

void terminal_signal(struct follow *f, int signo)
{
	struct msg_signal m = {.signo = signo};

	if (f->channel.link) CHANNEL_SEND(&f->channel, signal, &m);
}
