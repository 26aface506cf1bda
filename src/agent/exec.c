/*
 * exec.c - the channel of a command: from `open_exec` to `end`.
 *
 * Without the sandbox's cgroups nothing is started: the opening message waits (starting.h).
 * Credits, the end of stdin, and a reset may arrive meanwhile; bytes of stdin may not, for we gave no credit
 * yet.
 */
#include "agent/exec.h"

#include <errno.h>
#include <signal.h>

#include "agent/launch.h"
#include "agent/peers.h"
#include "agent/process.h"
#include "agent/report.h"
#include "agent/starting.h"
#include "base/err.h"
#include "base/mem.h"

#define CREDIT_BATCH (STDIN_WINDOW / 4) /* stdin's credit is given back in pieces of that size */

struct exec {
	struct channel channel;
	struct process_client client;
	struct input_source input;
	struct start_wait wait;
	struct process *process; /* NULL while waiting */
	uint64_t credit;         /* bytes of output the front takes */
	size_t input_credit;     /* bytes of stdin the front may send */
	size_t input_taken;      /* not yet given back */
	bool input_ended;
};

static void exec_free(struct exec *x)
{
	start_cancel(&x->wait);
	if (x->process) process_input_forget(x->process, &x->input);
	channel_close(&x->channel);
	free(x);
}

/* ---- the process's side ---- */

static size_t output_room(struct process_client *c)
{
	struct exec *x = container_of(c, struct exec, client);

	return (size_t)MIN(x->credit, WIRE_DATA_MAX);
}

static void on_output(struct process_client *c, uint8_t stream, const struct iovec parts[2])
{
	struct exec *x = container_of(c, struct exec, client);

	x->credit -= parts[0].iov_len + parts[1].iov_len;
	channel_send_data(&x->channel, stream, parts);
}

static void give_input_credit(struct exec *x, size_t bytes)
{
	struct msg_credit m = {.bytes = (uint32_t)bytes};

	x->input_credit += bytes;
	CHANNEL_SEND(&x->channel, credit, &m);
}

static void on_input_taken(struct input_source *s, size_t bytes)
{
	struct exec *x = container_of(s, struct exec, input);

	x->input_taken += bytes;
	if (x->input_taken < CREDIT_BATCH || x->input_ended) return;
	give_input_credit(x, x->input_taken);
	x->input_taken = 0;
}

static void on_end(struct process_client *c, const struct process *p)
{
	struct exec *x = container_of(c, struct exec, client);
	struct msg_end m = report_end(p);

	CHANNEL_SEND(&x->channel, end, &m);
	exec_free(x);
}

/* ---- start ---- */

static int start_process(struct exec *x, const struct msg_open_exec *m, struct err *e)
{
	bool background = m->flags & EXEC_BACKGROUND;
	struct process_spec spec = {.kind = KIND_PROCESS,
				    .session = m->session.at,
				    .background = background,
				    .cwd = m->cwd.at,
				    .uid = m->uid,
				    .with_stdin = (m->flags & EXEC_STDIN) && !background,
				    .timeout_ms = m->timeout_ms,
				    .grace_ms = m->grace_ms,
				    .client = background ? NULL : &x->client};

	return launch(&m->argv, &m->env, m->flags & EXEC_DIRECT, &spec, &x->process, e);
}

static void refuse(struct exec *x, int error, const char *text)
{
	peer_refuse(x->channel.peer, x->channel.id, error, text);
	exec_free(x);
}

static void start(struct exec *x, const struct msg_open_exec *m)
{
	struct err e = ERR_NONE;
	int r = start_process(x, m, &e);

	if (r < 0) {
		refuse(x, r, e.text);
		return;
	}
	report_opened(&x->channel, x->process);
	if (m->flags & EXEC_BACKGROUND) {
		struct msg_end end = report_started(x->process);

		CHANNEL_SEND(&x->channel, end, &end);
		exec_free(x);
		return;
	}
	if (!(m->flags & EXEC_STDIN)) return;
	if (x->input_ended) process_input_end(x->process);
	else give_input_credit(x, STDIN_WINDOW);
}

static void on_ready(struct start_wait *w, const struct frame *f)
{
	struct msg_open_exec m;

	(void)msg_open_exec_parse(f, &m); /* was parsed once before */
	start(container_of(w, struct exec, wait), &m);
}

static void on_refused(struct start_wait *w, int error, const char *text)
{
	refuse(container_of(w, struct exec, wait), error, text);
}

/* ---- the front's side ---- */

static int on_input(struct exec *x, const struct frame *f)
{
	struct msg_data m;

	if (msg_data_parse(f, &m) < 0 || m.stream != STREAM_IN || m.bytes.len > x->input_credit ||
	    !x->process)
		return -EPROTO;
	x->input_credit -= m.bytes.len;
	return process_input(x->process, &x->input, m.bytes.at, m.bytes.len);
}

static int on_credit(struct exec *x, const struct frame *f)
{
	struct msg_credit m;

	if (msg_credit_parse(f, &m) < 0) return -EPROTO;
	x->credit += m.bytes;
	if (x->credit > CREDIT_MAX) return -EPROTO;
	if (x->process) process_resume(x->process);
	return 0;
}

static int on_signal(struct exec *x, const struct frame *f)
{
	struct msg_signal m;

	if (msg_signal_parse(f, &m) < 0 || m.signo < 1 || m.signo > 64) return -EPROTO;
	if (x->process) process_signal(x->process, m.signo);
	return 0;
}

/* The process, if it was started, goes on without us. */
static void abandon(struct exec *x)
{
	struct process *p = x->process;

	exec_free(x);
	if (!p) return;
	process_input_end(p);
	process_detach(p);
}

static int on_reset(struct exec *x, const struct frame *f)
{
	struct msg_reset m;

	if (msg_reset_parse(f, &m) < 0) return -EPROTO;
	if (m.kill && x->process) process_signal(x->process, SIGKILL);
	abandon(x);
	return 0;
}

static int on_exec_frame(struct channel *c, const struct frame *f)
{
	struct exec *x = container_of(c, struct exec, channel);

	switch (f->type) {
	case MSG_data: return on_input(x, f);
	case MSG_credit: return on_credit(x, f);
	case MSG_signal: return on_signal(x, f);
	case MSG_reset: return on_reset(x, f);
	case MSG_eof:
		x->input_ended = true;
		if (x->process) process_input_end(x->process);
		return 0;
	default: return -EPROTO;
	}
}

static void on_exec_lost(struct channel *c)
{
	abandon(container_of(c, struct exec, channel));
}

static const struct channel_ops exec_ops = {.on_frame = on_exec_frame, .on_lost = on_exec_lost};

int exec_open(struct peer *p, const struct frame *f)
{
	struct exec *x = mem_new(sizeof *x);
	struct msg_open_exec m;

	x->client = (struct process_client){.room = output_room, .on_output = on_output, .on_end = on_end};
	x->input.on_taken = on_input_taken;
	x->wait.on_ready = on_ready;
	x->wait.on_refused = on_refused;
	if (msg_open_exec_parse(f, &m) < 0 || channel_open(&x->channel, p, f->channel, &exec_ops) < 0) {
		free(x);
		return -EPROTO;
	}
	x->credit = m.window;
	start_wait(&x->wait, f);
	return 0;
}
