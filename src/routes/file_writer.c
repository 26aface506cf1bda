#include <errno.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "routes/files.h"
#include "sandbox/operations.h"

#define FILL_MAX   (256u << 10) /* bytes after which a buffer is written */
#define BUFFER_CAP (1u << 20)

struct file_writer {
	struct loop *loop;
	const struct file_writer_events *events; /* NULL: nobody wants it any more */
	void *ctx;
	struct file_operation *operation; /* NULL: it has ended */
	int fd;                           /* -1: not open yet */
	struct buf filling, flushing;
	uint64_t written;
	int error;       /* of a write: a negative errno */
	bool in_thread;  /* FLUSHING, WRITTEN and ERROR are the thread's now */
	bool is_awaited; /* somebody waits for on_room */
	bool complete;   /* the last byte is here */
	bool committed;  /* the agent was asked to put the file in its place */
};

static void tidy(struct file_writer *w)
{
	if (w->events || w->in_thread) return;
	file_operation_drop(w->operation);
	fd_close(w->fd);
	buf_done(&w->filling);
	buf_done(&w->flushing);
	free(w);
}

/* Tells how it ended; W may be gone afterwards. */
static void end(struct file_writer *w, const char *failure)
{
	const struct file_writer_events *events = take_ptr(w->events);

	if (events) events->on_done(w->ctx, failure);
	tidy(w);
}

/* ---- bytes to the file ---- */

static void flush_in_thread(void *ctx)
{
	struct file_writer *w = ctx;
	size_t done = 0;

	while (done < w->flushing.len) {
		ssize_t n = pwrite(w->fd, w->flushing.data + done, w->flushing.len - done,
				   (off_t)(w->written + done));

		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) {
			w->error = n < 0 ? -errno : -EIO;
			return;
		}
		done += (size_t)n;
	}
	w->written += done;
}

static void on_flushed(void *ctx);

/* Hands what was filled to the thread. */
static void flush(struct file_writer *w)
{
	struct buf full = w->filling;

	w->filling = w->flushing;
	buf_clear(&w->filling);
	w->flushing = full;
	w->in_thread = true;
	loop_work(w->loop, flush_in_thread, on_flushed, w);
}

static void advance(struct file_writer *w)
{
	if (w->in_thread || w->committed || w->fd < 0) return;
	if (w->filling.len >= FILL_MAX || (w->complete && w->filling.len)) {
		flush(w);
	} else if (w->complete) {
		w->committed = true;
		file_operation_commit(w->operation);
	}
}

static void advance_and_tell(struct file_writer *w)
{
	advance(w);
	if (!w->is_awaited) return;
	w->is_awaited = false;
	w->events->on_room(w->ctx);
}

static void on_flushed(void *ctx)
{
	struct file_writer *w = ctx;

	w->in_thread = false;
	if (!w->events) tidy(w);
	else if (w->error) end(w, strerror(-w->error));
	else if (w->operation) advance_and_tell(w);
	else end(w, "the sandbox is gone");
}

/* ---- what the agent says ---- */

static void on_opened(void *ctx, int fd, const struct stat *st, const char *content)
{
	struct file_writer *w = ctx;

	(void)st, (void)content;
	w->fd = fd;
	advance_and_tell(w);
}

static void on_end(void *ctx, const struct operation_end *e)
{
	struct file_writer *w = ctx;

	w->operation = NULL;
	if (e->reason == END_DONE && w->committed) end(w, NULL);
	else end(w, *e->text ? e->text : strerror(e->error));
}

static const struct file_events events_of_file = {.on_opened = on_opened, .on_end = on_end};

/* ---- the caller's side ---- */

struct file_writer *file_writer_new(struct loop *loop, struct agent_link *link, uint32_t uid,
				    const char *path, uint32_t mode, const struct file_writer_events *events,
				    void *ctx)
{
	struct file_writer *w = mem_new(sizeof *w);

	w->loop = loop;
	w->events = events;
	w->ctx = ctx;
	w->fd = -1;
	w->filling = buf_with_cap(BUFFER_CAP);
	w->flushing = buf_with_cap(BUFFER_CAP);
	w->is_awaited = true;
	w->operation = file_open_write(link, uid, path, mode, &events_of_file, w);
	return w->operation ? w : file_writer_drop(w);
}

bool file_writer_add(struct file_writer *w, const void *bytes, size_t len)
{
	/* The cap is above what the header allows. */
	if (buf_add(&w->filling, bytes, len) < 0) w->error = -E2BIG;
	if (w->filling.len < FILL_MAX) return true;
	advance(w);
	w->is_awaited = w->filling.len >= FILL_MAX;
	return !w->is_awaited;
}

void file_writer_finish(struct file_writer *w)
{
	w->complete = true;
	w->is_awaited = false;
	advance(w);
}

struct file_writer *file_writer_drop(struct file_writer *w)
{
	if (!w) return NULL;
	w->events = NULL;
	tidy(w);
	return NULL;
}
