/*
 * exec.c - the channel of a command: from `open_exec` to `end`.
 *
 * Without the sandbox's cgroups (limits.h) nothing is started: the opening message is copied and waits.
 * Credits, the end of stdin, and a reset may arrive meanwhile; bytes of stdin may not, for we gave no credit
 * yet.
 */
#include "agent/exec.h"

#include <errno.h>
#include <signal.h>

#include "agent/command.h"
#include "agent/environment.h"
#include "agent/limits.h"
#include "agent/peers.h"
#include "agent/process.h"
#include "base/err.h"
#include "base/mem.h"

#define CREDIT_MAX   ((uint64_t)1 << 40)
#define CREDIT_BATCH (STDIN_WINDOW / 4) /* stdin's credit is given back in pieces of that size */

struct exec {
	struct channel channel;
	struct process_client client;
	struct process *process; /* NULL while waiting */
	uint64_t credit;         /* bytes of output the front takes */
	size_t input_credit;     /* bytes of stdin the front may send */
	size_t input_taken;      /* not yet given back */
	bool input_ended;
	struct exec *next;    /* waiting for the limits, in order */
	struct frame opening; /* its payload is a copy of ours while waiting */
};

#define WAITING_BYTES_MAX ((size_t)64 << 20)

static struct exec *waiting, **last_waiting = &waiting;
static size_t waiting_bytes; /* of their openings: ours, not charged to the sandbox */

static void exec_free(struct exec *x)
{
	channel_close(&x->channel);
	free((void *)x->opening.payload);
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

static void on_input_taken(struct process_client *c, size_t bytes)
{
	struct exec *x = container_of(c, struct exec, client);

	x->input_taken += bytes;
	if (x->input_taken < CREDIT_BATCH || x->input_ended) return;
	give_input_credit(x, x->input_taken);
	x->input_taken = 0;
}

static enum end_reason reason_of(const struct process_facts *f)
{
	if (f->timed_out) return END_TIMEOUT;
	if (f->cancelled) return END_CANCELLED;
	return f->signo ? END_SIGNAL : END_EXITED;
}

static void on_end(struct process_client *c, const struct process *p)
{
	struct exec *x = container_of(c, struct exec, client);
	const struct process_facts *f = process_facts(p);
	struct msg_end m = {.reason = (uint8_t)reason_of(f),
			    .code = f->code,
			    .signo = f->signo,
			    .text = wire_text_of(""),
			    .duration_ms = f->duration_ms,
			    .cpu_ms = f->cpu_ms,
			    .max_memory = f->max_memory,
			    .bytes = f->bytes,
			    .left_running = f->left_running};

	CHANNEL_SEND(&x->channel, end, &m);
	x->process = NULL;
	exec_free(x);
}

/* ---- start ---- */

/* The sentence for a person; paths are those of the sandbox. */
static int explain(struct err *e, int r, enum spawn_step step, const struct msg_open_exec *m,
		   const char *program)
{
	switch (step) {
	case SPAWN_CLONE: return r;
	case SPAWN_CGROUP: return err_set(e, r, "put the command into its control group");
	case SPAWN_USER: return err_set(e, r, "become user %u", m->uid);
	case SPAWN_CWD: return err_set(e, r, "working directory '%.160s'", m->cwd.at);
	case SPAWN_EXEC: return err_set(e, r, "execute '%.160s'", program);
	case SPAWN_BASH:
		if (r == -ENOENT) return err_say(e, r, "bash is missing in the image: /bin/bash");
		return err_set(e, r, "execute /bin/bash");
	}
	return r;
}

static int start_process(struct exec *x, const struct msg_open_exec *m, struct err *e)
{
	struct environment env = {0};
	struct command command;
	enum spawn_step step;
	int r;

	r = environment_build(m->uid, m->cwd.at, &m->env, &env, e);
	if (r < 0) return r;
	r = command_plan(&m->argv, m->flags & EXEC_DIRECT, &env, &m->env, &command, e);
	if (r == 0) {
		struct process_spec spec = {.command = &command,
					    .env = &env,
					    .cwd = m->cwd.at,
					    .uid = m->uid,
					    .with_stdin = m->flags & EXEC_STDIN,
					    .timeout_ms = m->timeout_ms,
					    .grace_ms = m->grace_ms,
					    .argv = &m->argv,
					    .client = &x->client};

		r = process_start(&spec, &x->process, &step, e);
		if (r < 0) r = explain(e, r, step, m, command.argv[0]);
		command_done(&command);
	}
	environment_done(&env);
	return r;
}

static void refuse(struct exec *x, int error, const char *text)
{
	peer_refuse(x->channel.peer, x->channel.id, error, text);
	exec_free(x);
}

static void start(struct exec *x, const struct frame *f)
{
	struct err e = ERR_NONE;
	struct msg_open_exec m;
	struct msg_opened opened = {.process_id = {.at = ""}};
	int r;

	(void)msg_open_exec_parse(f, &m); /* was parsed once before */
	r = start_process(x, &m, &e);
	if (r < 0) {
		refuse(x, r, e.text);
		return;
	}
	opened.pid = (uint32_t)process_facts(x->process)->pid;
	opened.process_id = wire_text_of(process_facts(x->process)->id);
	(void)msg_opened_add(peer_outbox_patient(x->channel.peer, msg_opened_size(&opened) + WIRE_HEADER),
			     x->channel.id, &opened);
	if (!(m.flags & EXEC_STDIN)) return;
	if (x->input_ended) process_input_end(x->process);
	else give_input_credit(x, STDIN_WINDOW);
}

/* ---- waiting for the limits ---- */

static void enqueue(struct exec *x, const struct frame *f)
{
	if (waiting_bytes + f->len > WAITING_BYTES_MAX) {
		refuse(x, -EAGAIN, "too many commands wait for the sandbox's control groups");
		return;
	}
	uint8_t *copy = mem_new(f->len + 1);
	memcpy(copy, f->payload, f->len);
	x->opening = *f;
	x->opening.payload = copy;
	*last_waiting = x;
	last_waiting = &x->next;
	waiting_bytes += f->len;
}

static void dequeue(struct exec *x)
{
	struct exec **at = &waiting;

	while (*at && *at != x)
		at = &(*at)->next;
	if (!*at) return;
	*at = x->next;
	if (!x->next) last_waiting = at;
	waiting_bytes -= x->opening.len;
}

static void on_limits_decided(int error, const char *text)
{
	while (waiting) {
		struct exec *x = waiting;

		dequeue(x);
		if (error) refuse(x, error, text);
		else start(x, &x->opening);
	}
}

/* ---- the front's side ---- */

static int on_input(struct exec *x, const struct frame *f)
{
	struct msg_data m;

	if (msg_data_parse(f, &m) < 0 || m.stream != STREAM_IN || m.bytes.len > x->input_credit)
		return -EPROTO;
	x->input_credit -= m.bytes.len;
	return process_input(x->process, m.bytes.at, m.bytes.len);
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
	struct process *p = take_ptr(x->process);

	if (!p) dequeue(x);
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

	x->client = (struct process_client){.room = output_room,
					    .on_output = on_output,
					    .on_input_taken = on_input_taken,
					    .on_end = on_end};
	if (msg_open_exec_parse(f, &m) < 0 || channel_open(&x->channel, p, f->channel, &exec_ops) < 0) {
		free(x);
		return -EPROTO;
	}
	x->credit = m.window;
	if (limits_want() == 0) start(x, f);
	else enqueue(x, f);
	return 0;
}

void exec_init(void)
{
	limits_init(on_limits_decided);
}

/* ---- open_list ---- */

static void tell(struct peer *peer, uint32_t channel, struct process *p)
{
	const struct process_facts *f = process_facts(p);
	struct msg_process m = {.process_id = wire_text_of(f->id),
				.pid = (uint32_t)f->pid,
				.state = f->ended ? PROCESS_EXITED : PROCESS_RUNNING,
				.started_ms = f->started_ms,
				.ended_ms = f->ended_ms,
				.code = f->code,
				.signo = f->signo,
				.timed_out = f->timed_out,
				.live = process_live(p),
				.cwd = wire_text_of(f->cwd),
				.argv = {.items = f->argv, .count = f->argc}};

	(void)msg_process_add(peer_outbox(peer, msg_process_size(&m) + WIRE_HEADER), channel, &m);
}

int exec_list_open(struct peer *peer, const struct frame *f)
{
	struct msg_end m = {.reason = END_DONE, .text = wire_text_of("")};

	for (struct process *p = process_first(); p; p = process_next(p))
		tell(peer, f->channel, p);
	(void)msg_end_add(peer_outbox(peer, msg_end_size(&m) + WIRE_HEADER), f->channel, &m);
	return 0;
}
