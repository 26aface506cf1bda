/*
 * pipes.c - the bytes of a process: output is read straight into its log and shown to the client from there;
 * input waits in a bounded queue.
 *
 * A pipe that may not be read now is not watched at all: epoll would report its hang-up again and again.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "agent/process_private.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/message.h"

#define READS_A_TURN 4 /* of one pipe: others have a right to their turn */

static void on_output_ready(struct watch *w, uint32_t events);
static void on_input_ready(struct watch *w, uint32_t events);

void process_pipes_init(struct process *p)
{
	for (size_t i = 0; i < 2; i++) {
		p->out[i] =
			(struct output_pipe){.process = p, .fd = -1, .stream = i ? STREAM_ERR : STREAM_OUT};
		p->out[i].watch = (struct watch){.fd = -1, .on_event = on_output_ready};
	}
	p->in.fd = -1;
	p->in.watch = (struct watch){.fd = -1, .on_event = on_input_ready};
	p->in.queue = buf_with_cap(STDIN_WINDOW);
}

/* Our end alone does not block: programs do not expect that of theirs. */
static int make_pipe(int *ret_read, int *ret_write, bool we_read)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0) return -errno;
	(void)fcntl(ends[we_read ? 0 : 1], F_SETFL, O_NONBLOCK);
	*ret_read = ends[0];
	*ret_write = ends[1];
	return 0;
}

/* The sandbox's own, opened once. */
static int null_fd(void)
{
	static int fd = -1;

	if (fd < 0) fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void process_pipes_close_theirs(int theirs[3])
{
	if (theirs[0] != null_fd()) fd_close(theirs[0]);
	fd_close(theirs[1]);
	fd_close(theirs[2]);
}

int process_pipes_make(struct process *p, bool with_stdin, int theirs[3], struct err *e)
{
	int r;

	if (with_stdin) {
		r = make_pipe(&theirs[0], &p->in.fd, false);
	} else {
		theirs[0] = null_fd();
		r = theirs[0] < 0 ? theirs[0] : 0;
	}
	if (r == 0) r = make_pipe(&p->out[0].fd, &theirs[1], true);
	if (r == 0) r = make_pipe(&p->out[1].fd, &theirs[2], true);
	return r < 0 ? err_set(e, r, "make the pipes of the command") : 0;
}

void process_pipes_watch(struct process *p)
{
	for (size_t i = 0; i < 2; i++)
		(void)watch_start(&p->out[i].watch, p->out[i].fd, EPOLLIN);
}

static void close_output(struct output_pipe *o)
{
	watch_forget(&o->watch);
	o->fd = fd_close(o->fd);
	o->owed = 0;
}

static void close_input(struct process *p)
{
	watch_forget(&p->in.watch);
	p->in.fd = fd_close(p->in.fd);
	buf_reset(&p->in.queue);
}

void process_pipes_close(struct process *p)
{
	for (size_t i = 0; i < 2; i++)
		close_output(&p->out[i]);
	close_input(p);
}

bool process_pipes_closed(const struct process *p)
{
	return p->out[0].fd < 0 && p->out[1].fd < 0;
}

/* ---- output ---- */

void process_pipes_owe(struct process *p)
{
	for (size_t i = 0; i < 2; i++) {
		int n = 0;

		if (p->out[i].fd >= 0 && ioctl(p->out[i].fd, FIONREAD, &n) == 0 && n > 0)
			p->out[i].owed = (size_t)n;
	}
}

static void block(struct process *p)
{
	for (size_t i = 0; i < 2; i++)
		watch_stop(&p->out[i].watch);
	if (!p->blocked_since) p->blocked_since = clock_ms();
}

/* Nothing is in the pipe and nobody can write to it: its end needs no credit. */
static bool is_finished(const struct output_pipe *o)
{
	struct pollfd p = {.fd = o->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && !(p.revents & POLLIN);
}

bool process_pipes_hold_output(const struct process *p)
{
	for (size_t i = 0; i < 2; i++) {
		int n = 0;

		if (p->out[i].fd >= 0 && ioctl(p->out[i].fd, FIONREAD, &n) == 0 && n > 0) return true;
	}
	return false;
}

/* Reads once. 1: there may be more; 0: not now; negative: the pipe is at its end. */
static int read_once(struct output_pipe *o)
{
	struct process *p = o->process;
	size_t room = p->client ? MIN(p->client->room(p->client), WIRE_DATA_MAX) : WIRE_DATA_MAX;
	struct iovec parts[2];
	ssize_t n;

	if (!room) {
		if (is_finished(o)) return -1;
		block(p);
		return 0;
	}
	n = log_read(&p->log, o->fd, o->stream, room, parts);
	if (n == -EAGAIN || n == -ENOMEM) return 0;
	if (n <= 0) return -1;
	o->owed -= MIN(o->owed, (size_t)n);
	if (p->reaped) p->quiet_from = clock_ms();
	if (p->client) p->client->on_output(p->client, o->stream, parts);
	return (size_t)n == room;
}

/* Reads what is there. Whether the pipe came to its end. */
static bool read_some(struct output_pipe *o)
{
	int r = 1;

	for (int i = 0; i < READS_A_TURN && r == 1 && o->fd >= 0; i++)
		r = read_once(o);
	if (r >= 0) return false;
	close_output(o);
	return true;
}

static void on_output_ready(struct watch *w, uint32_t events)
{
	struct output_pipe *o = container_of(w, struct output_pipe, watch);
	struct process *p = o->process;

	(void)events;
	if (read_some(o)) process_pipe_closed(p);
	else if (p->reaped) process_check_end(p);
}

void process_pipes_read(struct process *p)
{
	for (size_t i = 0; i < 2; i++) {
		if (p->blocked_since && p->out[i].fd >= 0 && is_finished(&p->out[i]))
			close_output(&p->out[i]);
		while (p->out[i].fd >= 0 && !p->blocked_since) {
			size_t before = p->log.total;

			/* To the end of the pipe if it is there already: that spares a short command a turn.
			 */
			if (read_some(&p->out[i]) || p->log.total == before) break;
		}
	}
}

void process_resume(struct process *p)
{
	uint64_t waited;

	if (!p->blocked_since || (p->client && !p->client->room(p->client))) return;
	waited = clock_ms() - p->blocked_since;
	p->blocked_since = 0;
	p->drain_until += waited;
	p->quiet_from += waited;
	for (size_t i = 0; i < 2; i++) {
		if (p->out[i].fd >= 0 && p->out[i].watch.fd < 0) {
			(void)watch_start(&p->out[i].watch, p->out[i].fd, EPOLLIN);
		}
	}
	process_check_end(p);
}

/* ---- input ---- */

static void input_taken(struct process *p, size_t len)
{
	if (len && p->client) p->client->on_input_taken(p->client, len);
}

/* Nobody reads any more: what waits is dropped, and so will be what comes. */
static void lose_input(struct process *p)
{
	size_t waiting = p->in.queue.len;

	close_input(p);
	input_taken(p, waiting);
}

static void write_input(struct process *p)
{
	struct input_pipe *in = &p->in;

	while (in->queue.len) {
		ssize_t n = write(in->fd, in->queue.data, in->queue.len);

		if (n < 0 && errno == EINTR) continue;
		if (n < 0 && errno == EAGAIN) {
			if (in->watch.fd < 0) (void)watch_start(&in->watch, in->fd, EPOLLOUT);
			return;
		}
		if (n < 0) {
			lose_input(p);
			return;
		}
		buf_take(&in->queue, (size_t)n);
		input_taken(p, (size_t)n);
	}
	watch_stop(&in->watch);
	if (in->ending) close_input(p);
	else buf_reset(&in->queue);
}

static void on_input_ready(struct watch *w, uint32_t events)
{
	(void)events;
	write_input(container_of(container_of(w, struct input_pipe, watch), struct process, in));
}

int process_input(struct process *p, const void *bytes, size_t len)
{
	if (p->in.fd < 0 || p->in.ending) {
		input_taken(p, len);
		return 0;
	}
	if (buf_add(&p->in.queue, bytes, len) < 0) return -EPROTO;
	write_input(p);
	return 0;
}

void process_input_end(struct process *p)
{
	p->in.ending = true;
	if (p->in.fd >= 0 && !p->in.queue.len) close_input(p);
}
