#include "agent/follow.h"

#include <errno.h>
#include <signal.h>

#include "agent/pty.h"
#include "agent/report.h"
#include "base/mem.h"

#define CREDIT_BATCH (KEYS_WINDOW / 4) /* credit for keys is given back in pieces of that size */

/* ---- output ---- */

static void finish(struct follow *f)
{
	struct process *p = f->process;
	struct msg_end m = {.reason = END_DONE, .text = wire_text_of(""), .seq = f->cursor - 1};

	if (process_facts(p)->ended) m = report_end(p);
	CHANNEL_SEND(&f->channel, end, &m);
	follow_free(f);
}

static void tell_gap(struct follow *f, uint64_t seq)
{
	struct msg_log_gap m = {.seq = seq};

	if (!f->gap_told) CHANNEL_SEND(&f->channel, log_gap, &m);
	f->gap_told = true;
}

/* Sends the next event. Whether there was one to send now; *RET_POOR: there is one, but no credit for it. */
static bool send_next(struct follow *f, bool *ret_poor)
{
	struct log_event event;
	struct iovec parts[2];
	uint64_t seq = f->cursor;
	bool any = log_event_at(process_log(f->process), &seq, &event, parts);

	/* Told at once, and once for each event that is sent: a reader that is stuck shall be known as such.
	 */
	if (seq != f->cursor || (any && event.cut)) tell_gap(f, seq);
	*ret_poor = any && event.len > f->credit;
	if (!any) f->cursor = seq;
	if (!any || *ret_poor) return false;
	channel_send_log(&f->channel, seq, &event, parts);
	f->credit -= event.len;
	f->cursor = seq + 1;
	f->gap_told = false;
	return true;
}

static size_t room(struct process_follower *follower)
{
	struct follow *f = container_of(follower, struct follow, follower);

	if (f->cursor < log_next_seq(process_log(f->process))) return 0;
	return (size_t)f->credit;
}

/* From here on it is not waited for, until it has caught up. */
static void on_patience_over(struct timer *t)
{
	struct follow *f = container_of(t, struct follow, patience);

	f->follower.room = NULL;
	process_resume(f->process);
}

static void watch_patience(struct follow *f)
{
	if (!f->is_patience_limited) return;
	if (room(&f->follower)) {
		f->follower.room = room;
		timer_stop(&f->patience);
	} else if (f->follower.room && !f->patience.armed) {
		timer_start(&f->patience, FOLLOW_PATIENCE_MS);
	}
}

/* Sends what there is and what is paid for. F may be freed. */
static void pump(struct follow *f)
{
	bool poor = false;

	while (f->is_live || f->cursor < f->until) {
		if (!send_next(f, &poor)) break;
	}
	watch_patience(f);
	if (poor) return;
	if (!f->now_told) CHANNEL_SEND(&f->channel, log_now, &(struct msg_log_now){});
	f->now_told = true;
	if (!f->is_live || process_facts(f->process)->ended) finish(f);
}

static void on_news(struct process_follower *follower)
{
	pump(container_of(follower, struct follow, follower));
}

/* ---- keys ---- */

static void give_key_credit(struct follow *f, size_t bytes)
{
	struct msg_credit m = {.bytes = (uint32_t)bytes};

	f->key_credit += bytes;
	CHANNEL_SEND(&f->channel, credit, &m);
}

static void on_taken(struct input_source *s, size_t bytes)
{
	struct follow *f = container_of(s, struct follow, keys);

	f->keys_taken += bytes;
	if (f->keys_taken < CREDIT_BATCH) return;
	give_key_credit(f, f->keys_taken);
	f->keys_taken = 0;
}

/* ---- the front's side ---- */

static int on_keys(struct follow *f, const struct frame *frame)
{
	struct msg_data m;

	if (msg_data_parse(frame, &m) < 0 || m.stream != STREAM_IN || !f->process) return -EPROTO;
	if (m.bytes.len > f->key_credit) return -EPROTO;
	f->key_credit -= m.bytes.len;
	return process_input(f->process, &f->keys, m.bytes.at, m.bytes.len);
}

static int on_credit(struct follow *f, const struct frame *frame)
{
	struct process *p = f->process;
	struct msg_credit m;

	if (msg_credit_parse(frame, &m) < 0) return -EPROTO;
	f->credit += m.bytes;
	if (f->credit > CREDIT_MAX) return -EPROTO;
	if (!p) return 0;
	pump(f);
	process_resume(p);
	return 0;
}

static int on_resize(struct follow *f, const struct frame *frame)
{
	struct msg_resize m;

	if (msg_resize_parse(frame, &m) < 0 || !m.cols || !follow_size_is_fair(m.cols, m.rows))
		return -EPROTO;
	f->cols = m.cols;
	f->rows = m.rows;
	if (f->process) process_resize(f->process, m.cols, m.rows);
	return 0;
}

static int on_signal(struct follow *f, const struct frame *frame)
{
	struct msg_signal m;

	if (msg_signal_parse(frame, &m) < 0 || m.signo < 1 || m.signo > 64) return -EPROTO;
	if (f->process) process_signal(f->process, m.signo);
	return 0;
}

/* Nobody listens any more. */
static void abandon(struct follow *f, bool kill)
{
	struct process *p = f->process;
	bool hangs_up = f->hangs_up;

	follow_free(f);
	if (!p) return;
	if (kill) process_signal(p, SIGKILL);
	if (hangs_up) process_hang_up(p);
	else process_resume(p);
}

static int on_reset(struct follow *f, const struct frame *frame)
{
	struct msg_reset m;

	if (msg_reset_parse(frame, &m) < 0) return -EPROTO;
	abandon(f, m.kill);
	return 0;
}

static int on_frame(struct channel *c, const struct frame *frame)
{
	struct follow *f = container_of(c, struct follow, channel);

	switch (frame->type) {
	case MSG_data: return on_keys(f, frame);
	case MSG_credit: return on_credit(f, frame);
	case MSG_resize: return on_resize(f, frame);
	case MSG_signal: return on_signal(f, frame);
	case MSG_reset: return on_reset(f, frame);
	default: return -EPROTO;
	}
}

static void on_lost(struct channel *c)
{
	abandon(container_of(c, struct follow, channel), false);
}

/* ---- life ---- */

static const struct channel_ops ops = {.on_frame = on_frame, .on_lost = on_lost};

struct follow *follow_new(struct peer *p, uint32_t channel, uint32_t window)
{
	struct follow *f = mem_new(sizeof *f);

	if (channel_open(&f->channel, p, channel, &ops) < 0) {
		free(f);
		return NULL;
	}
	f->follower.on_news = on_news;
	f->patience.on_time = on_patience_over;
	f->keys.on_taken = on_taken;
	f->is_live = true;
	f->cursor = 1;
	f->credit = window;
	return f;
}

void follow_free(struct follow *f)
{
	start_cancel(&f->wait);
	timer_stop(&f->patience);
	if (f->process) {
		process_input_forget(f->process, &f->keys);
		process_unfollow(f->process, &f->follower);
	}
	channel_close(&f->channel);
	free(f);
}

void follow_pace(struct follow *f)
{
	f->follower.room = room;
}

bool follow_size_is_fair(uint16_t cols, uint16_t rows)
{
	return !cols == !rows && cols <= PTY_SIZE_MAX && rows <= PTY_SIZE_MAX;
}

void follow_begin(struct follow *f, struct process *p)
{
	f->process = p;
	f->until = log_next_seq(process_log(p));
	process_follow(p, &f->follower);
	report_opened(&f->channel, p);
	if (f->cols) process_resize(p, f->cols, f->rows);
	if (f->takes_keys) give_key_credit(f, KEYS_WINDOW);
	pump(f);
}

/* ---- open_follow ---- */

/* Whether the cursor is one of this log's. After the end there is one more: that of the end itself. */
static bool choose_cursor(struct follow *f, const struct msg_open_follow *m, const struct process *p)
{
	uint64_t next = log_next_seq(process_log(p));

	if (m->flags & FOLLOW_NOW) {
		f->cursor = next;
	} else if (m->flags & FOLLOW_SINCE) {
		if (m->since >= next + process_facts(p)->ended) return false;
		f->cursor = MIN(m->since + 1, next);
	}
	return true;
}

int follow_open(struct peer *peer, const struct frame *frame)
{
	struct msg_open_follow m;
	struct process *p;
	struct follow *f;

	if (msg_open_follow_parse(frame, &m) < 0 || m.kind > KIND_TERMINAL ||
	    !follow_size_is_fair(m.cols, m.rows))
		return -EPROTO;
	p = process_find((enum process_kind)m.kind, m.name.at);
	if (!p) {
		peer_refuse(peer, frame->channel, ESRCH, "there is none of that name");
		return 0;
	}
	f = follow_new(peer, frame->channel, m.window);
	if (!f) return -EPROTO;
	if (!choose_cursor(f, &m, p)) {
		peer_refuse(peer, frame->channel, EINVAL, "not an event of this log");
		follow_free(f);
		return 0;
	}
	f->is_live = m.flags & FOLLOW_LIVE;
	f->takes_keys = (m.flags & FOLLOW_INPUT) && m.kind == KIND_TERMINAL;
	f->is_patience_limited = f->takes_keys && f->is_live;
	if (f->is_patience_limited) follow_pace(f);
	f->cols = m.cols;
	f->rows = m.rows;
	follow_begin(f, p);
	return 0;
}
