/*
 * persist.c - POST /v1/sandbox/:id/persist: /workspace as a tar archive, from the archiver's pipe to the
 * client.
 *
 * Theory of operation: an archive cannot be known to be whole before its last byte, and nobody here keeps it.
 * So the answer begins only when HOLD_MAX bytes of it have come, or its end: what fails early, and everything
 * small, is answered with its true status. What fails later resets the connection: there is no last chunk, so
 * no client takes a cut archive for a whole one. It is whole when the pipe is at its end *and* the archiver
 * says that it ended well. Memory stays flat: while much waits for the client the pipe is not read, which
 * stops the archiver.
 */
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "http/http.h"
#include "loop/loop.h"
#include "routes/answers.h"
#include "routes/archive_failure.h"
#include "routes/excludes.h"
#include "routes/handlers.h"
#include "routes/request.h"
#include "sandbox/archive.h"

#define HOLD_MAX     (256u << 10) /* of the archive, before the answer begins */
#define PIECE_MAX    (128u << 10) /* bytes of one read */
#define PENDING_MAX  (512u << 10) /* bytes that wait for the client */
#define READS_A_TURN 8            /* then the loop serves others first */

struct persist {
	struct request *rq;
	struct excludes excludes;
	struct archive_operation *pack; /* NULL: none, or it has ended */
	int fd;                         /* of the pipe; -1: none, or at its end */
	struct watch *watch;
	struct buf held;
	bool streaming;
	bool ended;
	char failure[ARCHIVE_WORDS_MAX + 64]; /* "" while there is none */
};

static void close_pipe(struct persist *p)
{
	p->watch = watch_free(p->watch);
	p->fd = fd_close(p->fd);
}

static void persist_free(struct persist *p)
{
	close_pipe(p);
	archive_drop(p->pack);
	excludes_done(&p->excludes);
	buf_done(&p->held);
	free(p);
}

/* Before an answer that is the last. */
static struct request *persist_done(void *ctx)
{
	struct persist *p = ctx;
	struct request *rq = p->rq;

	http_on_drain(rq->x, NULL, NULL);
	persist_free(p);
	return request_settled(rq);
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct persist *p = ctx;

	(void)x;
	persist_free(p);
}

static void fail(struct persist *p, const char *why)
{
	char copy[sizeof p->failure];
	struct exchange *x = p->rq->x;
	bool streaming = p->streaming;

	(void)snprintf(copy, sizeof copy, "%s", why);
	persist_done(p);
	if (streaming) http_abort(x);
	else http_reply_error(x, 502, "workspace_archive_read_error", copy);
}

/* ---- the archive ---- */

static void answer_whole(struct persist *p)
{
	auto_buf struct buf whole = p->held;
	struct exchange *x = p->rq->x;

	p->held = buf_with_cap(0);
	persist_done(p);
	http_reply(x, 200, "application/octet-stream", NULL, whole.data, whole.len);
}

/* Once both the pipe and the archiver have come to their end. */
static void check_end(struct persist *p)
{
	if (!p->ended || (p->fd >= 0 && !*p->failure)) return;
	if (*p->failure) fail(p, p->failure);
	else if (p->streaming) http_stream_end(persist_done(p)->x);
	else answer_whole(p);
}

static void begin_stream(struct persist *p)
{
	p->streaming = true;
	http_stream_begin(p->rq->x, 200, "application/octet-stream", NULL);
	http_stream_write(p->rq->x, p->held.data, p->held.len);
	buf_reset(&p->held);
}

/* One read. Whether there may be more now. */
static bool read_piece(struct persist *p)
{
	char *room =
		p->streaming ? http_stream_reserve(p->rq->x, PIECE_MAX) : buf_reserve(&p->held, PIECE_MAX);
	ssize_t n = read(p->fd, room, PIECE_MAX);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
	if (n <= 0) {
		close_pipe(p);
		return false;
	}
	if (p->streaming) http_stream_commit(p->rq->x, (size_t)n);
	else buf_grew(&p->held, (size_t)n);
	if (!p->streaming && p->held.len > HOLD_MAX) begin_stream(p);
	return true;
}

static bool is_client_full(const struct persist *p)
{
	return p->streaming && http_stream_pending(p->rq->x) > PENDING_MAX;
}

static void on_readable(void *ctx, unsigned events)
{
	struct persist *p = ctx;

	(void)events;
	for (int i = 0; i < READS_A_TURN && !is_client_full(p); i++) {
		if (!read_piece(p)) break;
	}
	if (p->fd >= 0) watch_want(p->watch, is_client_full(p) ? 0 : WATCH_IN);
	else check_end(p);
}

static void on_drain(struct exchange *x, void *ctx)
{
	struct persist *p = ctx;

	(void)x;
	if (p->watch) watch_want(p->watch, WATCH_IN);
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct persist *p = ctx;

	p->pack = NULL;
	p->ended = true;
	/* 1: the workspace changed while it was read, as a living one does. */
	if (end->reason != END_EXITED || end->code > 1)
		archive_failure(p->failure, sizeof p->failure, "tar", "persist", end);
	check_end(p);
}

/* ---- the way there ---- */

static void begin(void *ctx, struct agent_link *link)
{
	struct persist *p = ctx;
	int r = archive_pack(link, p->rq->routes->settings.uid, p->excludes.items, p->excludes.count, on_end,
			     p, &p->pack, &p->fd);

	if (r < 0) {
		fail(p, r == -E2BIG    ? "persist failed: too many exclude paths"
			: r == -EMFILE ? "persist failed: too much goes on in this sandbox"
				       : "persist failed: no pipe");
		return;
	}
	p->watch = watch_new(p->rq->routes->loop, p->fd, on_readable, p);
	watch_want(p->watch, WATCH_IN);
}

void handle_persist(struct request *rq)
{
	struct excludes_fault fault;
	struct excludes excludes;
	struct persist *p;

	if (!excludes_parse(http_query(rq->x), rq->profile == PROFILE_NEXT, &excludes, &fault)) {
		http_reply_error(rq->x, fault.status,
				 fault.status == 400 ? "invalid_request" : "workspace_archive_read_error",
				 fault.message);
		return;
	}
	p = mem_new(sizeof *p);
	p->rq = rq;
	p->excludes = excludes;
	p->fd = -1;
	p->held = buf_with_cap(HOLD_MAX + 2 * PIECE_MAX);
	http_body_ignore(rq->x);
	http_on_gone(rq->x, on_gone, p);
	http_on_drain(rq->x, on_drain, p);
	request_sandbox(rq, begin, persist_done, p);
}
