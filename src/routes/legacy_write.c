/*
 * legacy_write.c - POST /v1/sandbox/:id/write (API.md 3.9): a file in a form, otherwise as PUT /file.
 *
 * Theory of operation: the form streams by, its fields in any order. As soon as there are a path and a file
 * the writer (files.h) is opened, and while that takes the body is paused. What came of the file by then was
 * *spooled* into a memory file and goes first: little, when the path came first; otherwise up to SPOOL_MAX.
 * What is wrong is told in the contract's order, so only after the whole form was seen; nothing is in its
 * place before that.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "http/http.h"
#include "http/multipart.h"
#include "routes/answers.h"
#include "routes/files.h"
#include "routes/handlers.h"
#include "routes/legacy_path.h"
#include "routes/request.h"

#define WORKSPACE   "/workspace"
#define FILE_MODE   0644u
#define SPOOL_MAX   ((uint64_t)32 << 20)
#define SPOOL_PIECE (128u << 10)

enum field { FIELD_OTHER, FIELD_PATH, FIELD_FILE };

struct form {
	struct request *rq;
	struct multipart parser;
	enum field field; /* of the part that is passing by */
	bool has_path, has_file;
	struct buf path_text;
	char path[PATH_LIMIT]; /* resolved; "" while it is not known, and when it is not fine */
	uint64_t size;         /* of the file */
	struct file_writer *writer;
	bool begun;           /* the sandbox was asked for, and then the writer */
	bool is_full, paused; /* the writer; the body */
	int spool_fd;         /* -1: none */
	uint64_t spooled, unspooled;
	bool spool_failed;
	bool body_ended;
};

static void form_free(struct form *f)
{
	file_writer_drop(f->writer);
	fd_close(f->spool_fd);
	buf_done(&f->path_text);
	free(f);
}

/* Before the answer. */
static struct request *form_done(void *ctx)
{
	struct form *f = ctx;
	struct request *rq = f->rq;

	form_free(f);
	return request_settled(rq);
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct form *f = ctx;

	(void)x;
	form_free(f);
}

static void fail(struct form *f, const char *reason)
{
	char message[1200];

	(void)snprintf(message, sizeof message, "write failed: %.1000s", reason);
	http_reply_error(form_done(f)->x, 502, "workspace_archive_write_error", message);
}

/* ---- the writer ---- */

static bool is_unspooled(const struct form *f)
{
	return f->unspooled == f->spooled;
}

static void unspool(struct form *f)
{
	char piece[SPOOL_PIECE];

	while (!f->is_full && !is_unspooled(f)) {
		ssize_t n = pread(f->spool_fd, piece, sizeof piece, (off_t)f->unspooled);

		if (n <= 0) break; /* memory of our own: it is all there */
		f->unspooled += (uint64_t)n;
		f->is_full = !file_writer_add(f->writer, piece, (size_t)n);
	}
}

static void on_room(void *ctx)
{
	struct form *f = ctx;

	f->is_full = false;
	unspool(f);
	if (!is_unspooled(f)) return;
	if (f->body_ended) {
		file_writer_finish(f->writer);
	} else if (f->paused && !f->is_full) {
		f->paused = false;
		http_body_resume(f->rq->x);
	}
}

static void on_done(void *ctx, const char *failure)
{
	struct form *f = ctx;

	f->writer = NULL;
	if (failure) fail(f, failure);
	else answer_ok(form_done(f)->x);
}

static const struct file_writer_events writer_events = {.on_room = on_room, .on_done = on_done};

static void open_writer(void *ctx, struct agent_link *link)
{
	struct form *f = ctx;
	const struct routes *routes = f->rq->routes;

	f->writer = file_writer_new(routes->loop, link, routes->settings.uid, f->path, FILE_MODE,
				    &writer_events, f);
	if (!f->writer) fail(f, "too much goes on in this sandbox");
}

/* ---- the form as it passes by ---- */

static void on_part(void *ctx, const char *name)
{
	struct form *f = ctx;

	/* The first of a name counts. */
	f->field = FIELD_OTHER;
	if (strcmp(name, "path") == 0 && !f->has_path) f->field = FIELD_PATH;
	if (strcmp(name, "file") == 0 && !f->has_file) f->field = FIELD_FILE;
	if (f->field == FIELD_PATH) f->has_path = true;
	if (f->field == FIELD_FILE) f->has_file = true;
}

static void spool(struct form *f, const void *bytes, size_t len)
{
	if (f->spool_fd < 0) f->spool_fd = memfd_create("form", MFD_CLOEXEC);
	if (f->spool_fd < 0 || fd_write_all(f->spool_fd, bytes, len) < 0) f->spool_failed = true;
	else f->spooled += len;
}

/* The limit that the file has broken; 0: none. */
static uint64_t broken_limit(const struct form *f)
{
	uint64_t limit = f->rq->routes->settings.file_limit;

	if (limit && f->size > limit) return limit;
	return !f->has_path && f->size > SPOOL_MAX ? SPOOL_MAX : 0;
}

static void on_data(void *ctx, const void *bytes, size_t len)
{
	struct form *f = ctx;

	switch (f->field) {
	case FIELD_PATH:
		/* One that is cut has more bytes than any path: it will not be found fine. */
		(void)buf_add(&f->path_text, bytes, MIN(len, f->path_text.cap - f->path_text.len));
		break;
	case FIELD_FILE:
		f->size += len;
		if (broken_limit(f)) break;
		if (f->writer && is_unspooled(f)) f->is_full = !file_writer_add(f->writer, bytes, len);
		else if (!f->has_path || *f->path) spool(f, bytes, len);
		break;
	case FIELD_OTHER: break;
	}
}

/* A path that is fine lets the file that follows through at once. */
static void on_part_end(void *ctx)
{
	struct form *f = ctx;

	if (f->field != FIELD_PATH || !f->path_text.len || !request_session_is_fine(f->rq)) return;
	if (path_resolve(WORKSPACE, f->path_text.data, f->path_text.len, f->path) < 0 ||
	    !path_is_within(f->path, WORKSPACE))
		f->path[0] = '\0';
}

static const struct multipart_events part_events = {
	.on_part = on_part, .on_data = on_data, .on_part_end = on_part_end};

static bool on_body_piece(struct exchange *x, const void *bytes, size_t len, void *ctx)
{
	struct form *f = ctx;
	int r = multipart_feed(&f->parser, bytes, len);

	(void)x;
	if (r < 0) {
		answer_invalid(form_done(f)->x, "Invalid multipart body");
		return false;
	}
	if (broken_limit(f)) {
		uint64_t size = f->size, limit = broken_limit(f);

		answer_too_large(form_done(f)->x, "payload too large", size, limit);
		return false;
	}
	/* From here on the file goes through; what is spooled by now goes first. */
	if (*f->path && f->has_file && !f->begun) {
		f->paused = true;
		f->begun = true;
		request_sandbox(f->rq, open_writer, form_done, f);
		return false;
	}
	f->paused = f->is_full;
	return !f->paused;
}

/* ---- its end ---- */

/* In the contract's order. False: the request has been answered. */
static bool check(struct form *f)
{
	struct request *rq = f->rq;
	char path[PATH_LIMIT];

	if (!multipart_is_complete(&f->parser)) {
		answer_invalid(form_done(f)->x, "Invalid multipart body");
	} else if (!f->path_text.len) {
		answer_invalid(form_done(f)->x, LEGACY_PATH_MISSING);
	} else if (!f->has_file) {
		answer_invalid(form_done(f)->x, "file must be a part of the form");
	} else if (!*f->path) {
		auto_buf struct buf text = f->path_text;

		f->path_text = buf_with_cap(0);
		form_done(f);
		(void)legacy_path(rq, text.data, text.len, path); /* says what is wrong with it */
	} else {
		return true;
	}
	return false;
}

static void on_body_end(struct exchange *x, void *ctx)
{
	struct form *f = ctx;

	(void)x;
	if (!check(f)) return;
	f->body_ended = true;
	if (f->spool_failed) fail(f, "no memory for a file that comes before its path");
	else file_writer_finish(f->writer);
}

static const struct http_body_sink body_sink = {.on_piece = on_body_piece, .on_end = on_body_end};

void handle_file_write(struct request *rq)
{
	struct form *f = mem_new(sizeof *f);

	f->rq = rq;
	f->spool_fd = -1;
	f->path_text = buf_with_cap(PATH_LIMIT);
	http_on_gone(rq->x, on_gone, f);
	if (multipart_init(&f->parser, http_header(rq->x, "content-type"), &part_events, f) < 0)
		answer_invalid(form_done(f)->x, "Invalid multipart body");
	else http_body_stream(rq->x, &body_sink, f);
}
