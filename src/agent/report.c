#include "agent/report.h"

#include <errno.h>
#include <string.h>

#include "agent/peers.h"
#include "agent/processes.h"

static enum end_reason reason_of(const struct process_facts *f)
{
	if (f->bytes_lost) return END_LOST;
	if (f->timed_out) return END_TIMEOUT;
	if (f->cancelled) return END_CANCELLED;
	if (f->cause.reason != END_EXITED) return f->cause.reason;
	return f->signo ? END_SIGNAL : END_EXITED;
}

struct msg_end report_end(const struct process *p)
{
	const struct process_facts *f = process_facts(p);
	const char *text = f->bytes_lost ? "some of its input or output was lost" : "";

	return (struct msg_end){.reason = (uint8_t)reason_of(f),
				.code = f->code,
				.signo = f->signo,
				.text = wire_text_of(text),
				.duration_ms = f->duration_ms,
				.cpu_ms = f->cpu_ms,
				.max_memory = f->max_memory,
				.bytes = f->bytes,
				.left_running = f->left_running,
				.seq = log_next_seq(process_log(p)),
				.at_ms = f->ended_ms,
				.timed_out = f->timed_out,
				.limit = f->cause.limit,
				.oom_kills = f->cause.oom_kills,
				.forks_refused = f->cause.forks_refused};
}

struct msg_end report_started(const struct process *p)
{
	return (struct msg_end){
		.reason = END_DONE, .text = wire_text_of(""), .at_ms = process_facts(p)->started_ms};
}

void report_opened(struct channel *c, const struct process *p)
{
	struct msg_opened m = {.pid = (uint32_t)process_facts(p)->pid,
			       .process_id = wire_text_of(process_facts(p)->id)};

	(void)msg_opened_add(peer_outbox_patient(c->peer, msg_opened_size(&m) + WIRE_HEADER), c->id, &m);
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
				.argv = {.items = f->argv, .count = f->argc},
				.kind = (uint8_t)f->kind,
				.session = wire_text_of(f->session)};

	(void)msg_process_add(peer_outbox(peer, msg_process_size(&m) + WIRE_HEADER), channel, &m);
}

int list_open(struct peer *peer, const struct frame *f)
{
	struct msg_end end = {.reason = END_DONE, .text = wire_text_of("")};
	struct process *named = NULL;
	struct msg_open_list m;

	if (msg_open_list_parse(f, &m) < 0 || m.kind > KIND_TERMINAL) return -EPROTO;
	if (m.name.len) named = process_find((enum process_kind)m.kind, m.name.at);
	if (named) tell(peer, f->channel, named);
	for (struct process *p = m.name.len ? NULL : process_first(); p; p = process_next(p)) {
		if (process_facts(p)->kind == m.kind) tell(peer, f->channel, p);
	}
	(void)msg_end_add(peer_outbox(peer, msg_end_size(&end) + WIRE_HEADER), f->channel, &end);
	return 0;
}
