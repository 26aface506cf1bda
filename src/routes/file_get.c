/* file_get.c - GET and HEAD /v1/sandbox/:id/file/PATH: the agent opens, the kernel moves the bytes;
 * a small file comes along with the answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "http/http.h"
#include "routes/answers.h"
#include "routes/files.h"
#include "routes/handlers.h"
#include "routes/range.h"
#include "routes/request.h"
#include "sandbox/agent_link.h"
#include "sandbox/operations.h"

struct reading {
	struct request *rq;
	struct file_operation *operation;
	char path[PATH_LIMIT];
};

static struct request *reading_done(void *ctx)
{
	struct reading *rd = ctx;
	struct request *rq = rd->rq;

	free(rd);
	return request_settled(rq);
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct reading *rd = ctx;

	(void)x;
	file_operation_drop(rd->operation);
	free(rd);
}

/* ---- the answer ---- */

#define ETAG_SIZE    48
#define HEADERS_SIZE 320

static void make_etag(const struct stat *st, char etag[ETAG_SIZE])
{
	(void)snprintf(etag, ETAG_SIZE, "\"%" PRIx64 "-%" PRIx64 "\"",
		       (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
		       (uint64_t)st->st_size);
}

static void file_headers(const struct stat *st, const char *etag, char headers[HEADERS_SIZE])
{
	char modified[64];
	struct tm tm;

	if (!gmtime_r(&st->st_mtime, &tm) ||
	    !strftime(modified, sizeof modified, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		modified[0] = '\0';
	(void)snprintf(headers, HEADERS_SIZE, "Accept-Ranges: bytes\r\nETag: %s\r\n%s%s%s", etag,
		       *modified ? "Last-Modified: " : "", modified, *modified ? "\r\n" : "");
}

static void on_opened(void *ctx, int fd, const struct stat *st, const char *content)
{
	struct request *rq = reading_done(ctx);
	const char *if_range = http_header(rq->x, "if-range");
	const char *range = http_header(rq->x, "range");
	uint64_t size = (uint64_t)st->st_size, first = 0, len = size;
	char etag[ETAG_SIZE], headers[HEADERS_SIZE + 96];
	unsigned status = 200;
	size_t at;

	make_etag(st, etag);
	file_headers(st, etag, headers);
	at = strlen(headers);
	if (if_range && strcmp(if_range, etag) != 0) range = NULL;
	switch (range_parse(range, size, &first, &len)) {
	case RANGE_WHOLE: break;
	case RANGE_PART:
		status = 206;
		(void)snprintf(headers + at, sizeof headers - at,
			       "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", first,
			       first + len - 1, size);
		break;
	case RANGE_UNSATISFIABLE:
		fd_close(fd);
		(void)snprintf(headers, sizeof headers, "Content-Range: bytes */%" PRIu64 "\r\n", size);
		answer_error_with(rq->x, 416, "invalid_request", "the range lies outside the file", headers);
		return;
	}
	if (content) {
		fd_close(fd);
		http_reply(rq->x, status, "application/octet-stream", headers, content + first, len);
		return;
	}
	http_reply_file(rq->x, status, "application/octet-stream", headers, fd, first, len);
}

/* What a client understands as "there is no such file": also what is there and is no file. */
static bool is_missing(const struct operation_end *end)
{
	if (end->reason != END_FAILED) return false;
	return end->error == ENOENT || end->error == ENOTDIR || end->error == EISDIR || end->error == ENXIO ||
	       end->error == EINVAL || end->error == ENAMETOOLONG;
}

static void on_failed(void *ctx, const struct operation_end *end)
{
	struct reading *rd = ctx;
	char message[PATH_LIMIT + 64];

	if (is_missing(end)) {
		(void)snprintf(message, sizeof message, "File not found: %s", rd->path);
		http_reply_error(reading_done(rd)->x, 404, "workspace_read_not_found", message);
		return;
	}
	(void)snprintf(message, sizeof message, "read failed: %.1000s", end->text);
	http_reply_error(reading_done(rd)->x, 502, "exec_transport_error", message);
}

static const struct file_events events = {.on_opened = on_opened, .on_end = on_failed};

/* ---- the way there ---- */

static void open_file(void *ctx, struct agent_link *link)
{
	struct reading *rd = ctx;
	rd->operation = file_open_read(link, rd->rq->routes->settings.uid, rd->path, &events, rd);
	if (rd->operation) return;
	http_reply_error(reading_done(rd)->x, 502, "exec_transport_error",
			 "read failed: too much goes on in this sandbox");
}

/* HEAD does not start a sandbox: where there is none there are no files. */
static bool starts(const struct request *rq)
{
	return rq->match.route->sandbox == STARTS ||
	       sandboxes_state(rq->routes->sandboxes, rq->match.id) != SANDBOX_ABSENT;
}

void file_answer(struct request *rq, const char *path)
{
	struct reading *rd = mem_new(sizeof *rd);

	rd->rq = rq;
	(void)snprintf(rd->path, sizeof rd->path, "%s", path);
	http_on_gone(rq->x, on_gone, rd);
	request_sandbox(rq, open_file, reading_done, rd);
}

void handle_file_get(struct request *rq)
{
	char path[PATH_LIMIT];

	if (!request_file_path(rq, path)) return;
	if (!starts(rq)) {
		http_reply_error(rq->x, 404, "workspace_read_not_found", "there is no sandbox of this id");
		return;
	}
	file_answer(rq, path);
}
