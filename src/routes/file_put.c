/*
 * file_put.c - PUT /v1/sandbox/:id/file/PATH: a body of any size into a file, with flat memory, all or
 * nothing. While the writer (files.h) has no room the body is paused; that stops the client. A small body is
 * collected first and goes to the agent in one message, which answers when it is in its place.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "http/http.h"
#include "http/target.h"
#include "routes/answers.h"
#include "routes/files.h"
#include "routes/handlers.h"
#include "routes/request.h"
#include "sandbox/operations.h"

#define FILE_MODE 0644u

struct writing {
	struct request *rq;
	struct file_writer *writer;       /* of a body that streams by */
	struct file_operation *operation; /* of one that was collected */
	struct buf content;
	bool whole; /* CONTENT is all of it */
	bool streaming;
	uint64_t received;
	char path[PATH_LIMIT];
};

static void writing_free(struct writing *w)
{
	file_writer_drop(w->writer);
	file_operation_drop(w->operation);
	buf_done(&w->content);
	free(w);
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct writing *w = ctx;

	(void)x;
	writing_free(w);
}

/* Before the answer. */
static struct request *writing_done(void *ctx)
{
	struct writing *w = ctx;
	struct request *rq = w->rq;

	writing_free(w);
	return request_settled(rq);
}

static void fail(struct writing *w, const char *reason)
{
	char message[1200];

	(void)snprintf(message, sizeof message, "write failed: %.1000s", reason);
	http_reply_error(writing_done(w)->x, 502, "workspace_archive_write_error", message);
}

/* ---- a body that streams by ---- */

static bool on_body_piece(struct exchange *x, const void *bytes, size_t len, void *ctx)
{
	struct writing *w = ctx;
	uint64_t limit = w->rq->routes->settings.file_limit, received = w->received += len;

	(void)x;
	if (!limit || received <= limit) return file_writer_add(w->writer, bytes, len);
	answer_too_large(writing_done(w)->x, "payload too large", received, limit);
	return false;
}

static void on_body_end(struct exchange *x, void *ctx)
{
	struct writing *w = ctx;

	(void)x;
	file_writer_finish(w->writer);
}

static const struct http_body_sink body_sink = {.on_piece = on_body_piece, .on_end = on_body_end};

static void on_room(void *ctx)
{
	struct writing *w = ctx;

	if (w->streaming) {
		http_body_resume(w->rq->x);
		return;
	}
	w->streaming = true;
	http_body_stream(w->rq->x, &body_sink, w);
}

static void on_done(void *ctx, const char *failure)
{
	struct writing *w = ctx;

	w->writer = NULL;
	if (failure) fail(w, failure);
	else answer_ok(writing_done(w)->x);
}

static const struct file_writer_events writer_events = {.on_room = on_room, .on_done = on_done};

/* ---- a body that was collected ---- */

static void on_opened(void *ctx, int fd, const struct stat *st, const char *content)
{
	(void)ctx, (void)fd, (void)st, (void)content; /* the agent writes: there is nothing to open */
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct writing *w = ctx;

	w->operation = NULL;
	if (end->reason == END_DONE) answer_ok(writing_done(w)->x);
	else fail(w, *end->text ? end->text : strerror(end->error));
}

static const struct file_events whole_events = {.on_opened = on_opened, .on_end = on_end};

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

static void open_file(void *ctx, struct agent_link *link)
{
	struct writing *w = ctx;
	uint32_t uid = w->rq->routes->settings.uid, mode = mode_of_new_file(w->rq);

	if (w->whole)
		w->operation = file_write_whole(link, uid, w->path, mode, w->content.data, w->content.len,
						&whole_events, w);
	else w->writer = file_writer_new(w->rq->routes->loop, link, uid, w->path, mode, &writer_events, w);
	if (!w->operation && !w->writer) fail(w, "too much goes on in this sandbox");
}

/* Takes CONTENT; NULL: the body is yet to come. */
static void begin(struct request *rq, const char *path, struct buf *content)
{
	struct writing *w = mem_new(sizeof *w);

	w->rq = rq;
	w->whole = content;
	w->content = content ? *content : buf_with_cap(0);
	(void)snprintf(w->path, sizeof w->path, "%s", path);
	http_on_gone(rq->x, on_gone, w);
	request_sandbox(rq, open_file, writing_done, w);
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
