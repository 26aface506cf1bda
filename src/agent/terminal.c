#include "agent/terminal.h"

#include <errno.h>

#include "agent/follow.h"
#include "agent/launch.h"
#include "agent/pty.h"
#include "agent/report.h"
#include "base/err.h"
#include "base/mem.h"

static void refuse(struct follow *f, int error, const char *text)
{
	peer_refuse(f->channel.peer, f->channel.id, error, text);
	follow_free(f);
}

/* The terminal of that name, dead or alive; NULL: none. */
static struct process *find(const struct msg_open_terminal *m)
{
	return m->name.len ? process_find(KIND_TERMINAL, m->name.at) : NULL;
}

/* A side alone is that of a new one; it resizes none that lives. */
static void forget_size(struct follow *f)
{
	f->cols = f->rows = 0;
}

static int start_program(const struct msg_open_terminal *m, uint16_t cols, uint16_t rows,
			 struct process **ret, struct err *e)
{
	struct process_spec spec = {.kind = KIND_TERMINAL,
				    .name = m->name.len ? m->name.at : NULL,
				    .session = m->session.at,
				    .forgotten = m->flags & TERMINAL_PRIVATE,
				    .cols = cols ? cols : PTY_COLS_DEFAULT,
				    .rows = rows ? rows : PTY_ROWS_DEFAULT,
				    .cwd = m->cwd.at,
				    .uid = m->uid};

	return launch(&m->argv, &m->env, true, &spec, ret, e);
}

static void only_started(struct follow *f, const struct process *p)
{
	struct msg_end m = report_started(p);

	report_opened(&f->channel, p);
	CHANNEL_SEND(&f->channel, end, &m);
	follow_free(f);
}

static void start(struct follow *f, const struct msg_open_terminal *m)
{
	struct process *p = find(m), *before = p;
	bool lives = p && !process_facts(p)->ended;
	struct err e = ERR_NONE;
	int r;

	if (lives && !(m->flags & TERMINAL_SHARED)) {
		refuse(f, EEXIST, "there is a terminal of that name");
		return;
	}
	if (!lives) {
		r = start_program(m, f->cols, f->rows, &p, &e);
		if (r < 0) {
			refuse(f, r, e.text);
			return;
		}
		if (before) process_retire(before);
		forget_size(f); /* it has that size */
	} else if (!f->cols || !f->rows) {
		forget_size(f);
	}
	if (m->flags & TERMINAL_DETACHED) only_started(f, p);
	else follow_begin(f, p);
}

static void on_ready(struct start_wait *w, const struct frame *frame)
{
	struct msg_open_terminal m;

	(void)msg_open_terminal_parse(frame, &m); /* was parsed once before */
	start(container_of(w, struct follow, wait), &m);
}

static void on_refused(struct start_wait *w, int error, const char *text)
{
	refuse(container_of(w, struct follow, wait), error, text);
}

int terminal_open(struct peer *peer, const struct frame *frame)
{
	struct msg_open_terminal m;
	struct follow *f;

	if (msg_open_terminal_parse(frame, &m) < 0) return -EPROTO;
	if (m.cols > PTY_SIZE_MAX || m.rows > PTY_SIZE_MAX) return -EPROTO;
	if (m.name.len && !id_is_name(m.name.at, m.name.len)) return -EPROTO;
	f = follow_new(peer, frame->channel, m.window);
	if (!f) return -EPROTO;
	follow_pace(f);
	f->takes_keys = true;
	f->hangs_up = m.flags & TERMINAL_PRIVATE;
	f->cols = m.cols;
	f->rows = m.rows;
	f->wait.on_ready = on_ready;
	f->wait.on_refused = on_refused;
	start_wait(&f->wait, frame);
	return 0;
}
