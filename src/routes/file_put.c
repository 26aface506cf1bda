/*
 * file_put.c - PUT /v1/sandbox/:id/file/PATH: a body of any size into a file, with flat memory, all or
 * nothing.
 *
 * Theory of operation: the agent opens a temporary sibling and hands us its descriptor. Two buffers take
 * turns: the loop fills one from the body while a thread writes the other, so a slow disk delays nobody else
 * and a fast one keeps the client busy. When the one being filled is full and the other still being written,
 * the body is paused; that stops the client. After the last byte the agent is told to put the file in its
 * place, and only its word makes a 200. A small body is collected first and goes to the agent in one message,
 * which answers when it is in its place.
 *
 * What may never happen: memory freed while the thread uses it. So a *writing* whose client or sandbox is
 * lost is only marked (x or operation NULL), and writing_tidy() frees it when nothing of it is under way any
 * more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "http/http.h"
#include "http/target.h"
#include "http/target.h"
#include "loop/loop.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/request.h"
#include "sandbox/agent_link.h"
#include "sandbox/operations.h"

#define FILL_MAX   (256u << 10) /* bytes after which a buffer is written */
#define FILE_MODE  0644u
#define BUFFER_CAP (1u << 20) /* the piece that fills it comes on top */

struct writing {
	struct request *rq; /* NULL: answered, or the client is gone */
	struct loop *loop;
	struct sandbox_wait *wait;
	struct file_operation *operation; /* NULL: none, or it has ended */
	int fd;
	struct buf filling, flushing;
	uint64_t received, written;
	int error;      /* of a write: a negative errno */
	bool in_thread; /* FLUSHING, WRITTEN and ERROR are the thread's now */
	bool paused;
	bool whole;     /* FILLING is all of it, for the agent to write */
	bool complete;  /* the last byte of the body is here */
	bool committed; /* the agent was asked to put the file in its place */
	char path[PATH_LIMIT];
};

static void writing_tidy(struct writing *w)
{
	if (w->rq || w->in_thread) return;
	file_operation_drop(w->operation);
	fd_close(w->fd);
	buf_done(&w->filling);
	buf_done(&w->flushing);
	free(w);
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct writing *w = ctx;

	(void)x;
	w->rq = NULL;
	w->wait = sandbox_wait_cancel(w->wait);
	writing_tidy(w);
}

/* Before the answer; the caller answers on the exchange returned, after which W is nobody's. */
static struct request *take_request(struct writing *w)
{
	struct request *rq = take_ptr(w->rq);

	http_on_gone(rq->x, NULL, NULL);
	return rq;
}

static void fail(struct writing *w, const char *reason)
{
	char message[1200];

	(void)snprintf(message, sizeof message, "write failed: %.1000s", reason);
	if (w->rq) http_reply_error(take_request(w)->x, 502, "workspace_archive_write_error", message);
	writing_tidy(w);
}

/* ---- bytes to the file ---- */

static void flush_in_thread(void *ctx)
{
	struct writing *w = ctx;
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
static void flush(struct writing *w)
{
	struct buf full = w->filling;

	w->filling = w->flushing;
	buf_clear(&w->filling);
	w->flushing = full;
	w->in_thread = true;
	loop_work(w->loop, flush_in_thread, on_flushed, w);
}

static void advance(struct writing *w)
{
	if (w->in_thread || w->committed) return;
	if (w->filling.len >= FILL_MAX || (w->complete && w->filling.len)) {
		flush(w);
	} else if (w->complete) {
		w->committed = true;
		file_operation_commit(w->operation);
	}
	if (!w->paused) return;
	w->paused = false;
	http_body_resume(w->rq->x);
}

static void on_flushed(void *ctx)
{
	struct writing *w = ctx;

	w->in_thread = false;
	if (w->error) fail(w, strerror(-w->error));
	else if (w->rq && w->operation) advance(w);
	else writing_tidy(w);
}

/* ---- the body ---- */

static void refuse_size(struct writing *w, uint64_t bytes)
{
	uint64_t limit = w->rq->routes->settings.file_limit;

	answer_too_large(take_request(w)->x, "payload too large", bytes, limit);
	writing_tidy(w);
}

static bool on_body_piece(struct exchange *x, const void *bytes, size_t len, void *ctx)
{
	struct writing *w = ctx;
	uint64_t limit = w->rq->routes->settings.file_limit;

	(void)x;
	w->received += len;
	if (limit && w->received > limit) {
		refuse_size(w, w->received);
		return false;
	}
	if (buf_add(&w->filling, bytes, len) < 0) {
		fail(w, "a piece of the body is larger than any should be");
		return false;
	}
	if (w->filling.len < FILL_MAX) return true;
	if (w->in_thread) {
		w->paused = true;
		return false;
	}
	flush(w);
	return true;
}

static void on_body_end(struct exchange *x, void *ctx)
{
	struct writing *w = ctx;

	(void)x;
	w->complete = true;
	advance(w);
}

static const struct http_body_sink body_sink = {.on_piece = on_body_piece, .on_end = on_body_end};

/* ---- what the agent says ---- */

static void on_opened(void *ctx, int fd, const struct stat *st, const char *content)
{
	struct writing *w = ctx;

	(void)st, (void)content;
	w->fd = fd;
	http_body_stream(w->rq->x, &body_sink, w);
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct writing *w = ctx;

	w->operation = NULL;
	if (end->reason != END_DONE || !w->committed) {
		fail(w, *end->text ? end->text : strerror(end->error));
		return;
	}
	if (w->rq) answer_ok(take_request(w)->x);
	writing_tidy(w);
}

static const struct file_events events = {.on_opened = on_opened, .on_end = on_end};

/* ---- the way there ---- */

/*
 * ?mode=755, an extension for clients that copy programs: octal, at most 777. What is no such number counts
 * for nothing.
 */
static uint32_t mode_of_new_file(const struct request *rq)
{
	auto_buf struct buf text = buf_with_cap(8);
	unsigned long mode;
	char *end;

	if (target_query_get(http_query(rq->x), "mode", &text) < 0) return FILE_MODE;
	mode = strtoul(buf_text(&text), &end, 8);
	return text.len > 0 && *end == '\0' && mode > 0 && mode <= 0777 ? (uint32_t)mode : FILE_MODE;
}

static void open_file(struct writing *w, struct agent_link *link)
{
	uint32_t uid = w->rq->routes->settings.uid, mode = mode_of_new_file(w->rq);

	w->committed = w->whole;
	if (w->whole)
		w->operation = file_write_whole(link, uid, w->path, mode, w->filling.data, w->filling.len,
						&events, w);
	else w->operation = file_open_write(link, uid, w->path, mode, &events, w);
	if (!w->operation) fail(w, "too much goes on in this sandbox");
}

static void on_sandbox(void *ctx, const struct sandbox_outcome *outcome)
{
	struct writing *w = ctx;

	w->wait = NULL;
	if (outcome->sandbox) {
		open_file(w, sandbox_link(outcome->sandbox));
		return;
	}
	answer_not_started(take_request(w), outcome);
	writing_tidy(w);
}

/* Takes CONTENT; NULL: the body is yet to come. */
static void begin(struct request *rq, const char *path, struct buf *content)
{
	struct writing *w = mem_new(sizeof *w);
	struct agent_link *link;

	w->rq = rq;
	w->loop = rq->routes->loop;
	w->fd = -1;
	w->whole = content;
	w->filling = content ? *content : buf_with_cap(BUFFER_CAP);
	w->flushing = buf_with_cap(BUFFER_CAP);
	(void)snprintf(w->path, sizeof w->path, "%s", path);
	http_on_gone(rq->x, on_gone, w);
	link = request_sandbox(rq, &w->wait, on_sandbox, w);
	if (link) {
		open_file(w, link);
	} else if (!w->wait) {
		answer_no_keeper(take_request(w)->x);
		writing_tidy(w);
	}
}

/* LEN is not above FILE_WHOLE_MAX: the head announced it. */
static void on_whole_body(struct exchange *x, const char *bytes, size_t len, void *ctx)
{
	struct buf content = buf_with_cap(FILE_WHOLE_MAX);
	char path[PATH_LIMIT];

	(void)x;
	(void)buf_add(&content, bytes, len);
	if (request_file_path(ctx, path)) begin(ctx, path, &content);
	else buf_done(&content);
}

void handle_file_put(struct request *rq)
{
	uint64_t limit = rq->routes->settings.file_limit;
	int64_t announced = http_content_length(rq->x);
	char path[PATH_LIMIT];

	if (!request_file_path(rq, path)) return;
	if (limit && announced > 0 && (uint64_t)announced > limit) {
		answer_too_large(rq->x, "payload too large", (uint64_t)announced, limit);
		return;
	}
	if (announced >= 0 && announced <= FILE_WHOLE_MAX)
		http_body_collect(rq->x, FILE_WHOLE_MAX, on_whole_body, rq);
	else begin(rq, path, NULL);
}
