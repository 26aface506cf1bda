/*
 * sendfile.c - a file as the body of a response.
 *
 * A small file that the page cache holds goes out with the head in one send, from the loop's thread.
 * Everything else is moved by sendfile() on the thread pool, a bounded piece at a time, because reading
 * may wait for a disk; where the socket is full the loop waits for it, and then the pool goes on.
 *
 * A job under way cannot be taken back. When its connection dies the job gets the socket to close, and
 * ends alone.
 */
#include "http/internal.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "base/mem.h"
#include "loop/loop.h"

#define SMALL_FILE 65536
#define PIECE_MAX  (8u << 20) /* of one job, so that a few large downloads share the pool's threads */

struct file_job {
	struct conn *conn; /* NULL: died, and left us the socket */
	int fd, sock;
	off_t offset;
	uint64_t left;
	bool running, blocked;
	/* Of the last piece: */
	uint64_t moved;
	int result; /* 0; -EAGAIN: the socket is full; -EIO: the file ended early; others */
};

static struct file_job *job_free(struct file_job *job)
{
	fd_close(job->fd);
	free(job);
	return NULL;
}

/* On a thread of the pool. Touches nothing but the job. */
static void move_piece(void *ctx)
{
	struct file_job *job = ctx;
	uint64_t piece = MIN(job->left, PIECE_MAX);

	job->moved = 0;
	job->result = 0;
	while (job->moved < piece) {
		ssize_t n = sendfile(job->sock, job->fd, &job->offset, piece - job->moved);

		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) {
			job->result = n < 0 ? -errno : -EIO;
			return;
		}
		job->moved += (uint64_t)n;
	}
}

static void on_piece_moved(void *ctx)
{
	struct file_job *job = ctx;
	struct conn *c = job->conn;

	job->running = false;
	if (!c) {
		fd_close(job->sock);
		job_free(job);
		return;
	}
	job->left -= job->moved;
	c->progress |= job->moved > 0;
	c->x->bytes_sent += job->moved;
	if (job->result == -EAGAIN) job->blocked = true;
	/* Anything else can only be ended by a reset: a short body must not look whole. */
	else if (job->result < 0) c->x->aborted = true;
	conn_mark(c);
}

void file_step(struct conn *c)
{
	struct file_job *job = c->file;

	if (!job || job->running || job->blocked || c->out.len || c->x->aborted || c->broken) return;
	if (job->left == 0) {
		c->file = job_free(job);
		c->x->answer = ANSWER_COMPLETE;
		return;
	}
	job->running = true;
	loop_work(c->server->loop, move_piece, on_piece_moved, job);
}

/* Whether all of it was cached, and is now in the output. */
static bool send_small(struct conn *c, const struct buf *head, int fd, uint64_t offset, uint64_t len)
{
	if (len > SMALL_FILE) return false;
	char *at = output_reserve(c, head->len + len);
	struct iovec part = {.iov_base = at + head->len, .iov_len = len};

	if (len && preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT) != (ssize_t)len) return false;
	memcpy(at, head->data, head->len);
	buf_grew(&c->out, head->len + len);
	return true;
}

void file_begin(struct exchange *x, const struct buf *head, int fd, uint64_t offset, uint64_t len)
{
	struct conn *c = x->conn;

	if (send_small(c, head, fd, offset, len)) {
		fd_close(fd);
		x->answer = ANSWER_COMPLETE;
		return;
	}
	x->answer = ANSWER_FILE;
	output_send(c, head->data, head->len, NULL, 0);
	c->file = mem_new(sizeof *c->file);
	*c->file =
		(struct file_job){.conn = c, .fd = fd, .sock = c->fd, .offset = (off_t)offset, .left = len};
}

bool file_is_blocked(const struct conn *c)
{
	return c->file && c->file->blocked;
}

void file_unblock(struct conn *c)
{
	if (c->file) c->file->blocked = false;
}

void file_drop(struct conn *c)
{
	struct file_job *job = c->file;

	c->file = NULL;
	if (!job) return;
	if (!job->running) {
		job_free(job);
		return;
	}
	const struct linger reset = {.l_onoff = 1};
	(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	(void)shutdown(c->fd, SHUT_RDWR); /* the job meets an error at its next byte */
	job->conn = NULL;
	/* The number must not be given to another connection while the job uses it. */
	c->watch = watch_free(c->watch);
	c->fd = -1;
}
