/*
 * pipes.c - output is read straight into the log of its process and shown to the client from there. A
 * terminal is one pipe for both ways: its output is read like stdout, and a copy of its descriptor takes the
 * input.
 *
 * A terminal gives 4 KiB at a time at most, and a packet for each would cost more than its bytes. So when it
 * gives much, what follows is gathered and told in one go: as soon as that is GATHER_MOST, or no more comes,
 * or GATHER_MS are over. Little goes on at once: a key's echo waits for nothing.
 *
 * A pipe that may not be read now is not watched at all: epoll would report its hang-up again and again.
 */
#include "agent/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "agent/processes_private.h"
#include "agent/pty.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/message.h"

#define READS_A_TURN     4    /* of one pipe: others have a right to their turn */
#define TTY_READS_A_TURN 32   /* of a terminal, until GATHER_MOST */
#define READ_TRIES       3    /* of one pipe that gives errors, one after the other */
#define TTY_MOST         4096 /* a terminal gives no more at once */
#define TTY_FULL         2048 /* with this much there may be more */
#define GATHER_MOST      (2 * WIRE_DATA_MAX)
#define GATHER_PART      2 /* of the log: its readers shall not have to wait for all of it */
#define GATHER_MS        1
#define LOOKS            5 /* for more, before we believe that there is none */

static void on_output_ready(struct watch *w, uint32_t events);
static void on_gathered(struct timer *t);

void process_pipes_init(struct process *p, void (*on_read)(struct process *p, bool closed))
{
	for (size_t i = 0; i < 2; i++) {
		p->out[i] =
			(struct output_pipe){.process = p, .fd = -1, .stream = i ? STREAM_ERR : STREAM_OUT};
		p->out[i].watch = (struct watch){.fd = -1, .on_event = on_output_ready};
	}
	p->on_read = on_read;
	p->gathering.on_time = on_gathered;
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
	if (theirs[1] == theirs[0]) return; /* a terminal, all of them */
	fd_close(theirs[1]);
	fd_close(theirs[2]);
}

int process_pipes_make_terminal(struct process *p, uint32_t uid, uint16_t cols, uint16_t rows, int theirs[3],
				struct err *e)
{
	int r = pty_open(uid, cols, rows, &p->out[0].fd, &theirs[0], e);

	if (r < 0) return r;
	theirs[1] = theirs[2] = theirs[0];
	p->in.fd = fcntl(p->out[0].fd, F_DUPFD_CLOEXEC, 3);
	return p->in.fd < 0 ? err_set(e, -errno, "copy the terminal's descriptor") : 0;
}

int process_pipes_make(struct process *p, const int *given, bool with_stdin, int theirs[3], struct err *e)
{
	int r = 0;

	if (given) memcpy(theirs, given, 3 * sizeof *theirs);
	if (theirs[0] < 0 && with_stdin) {
		r = make_pipe(&theirs[0], &p->in.fd, false);
	} else if (theirs[0] < 0) {
		theirs[0] = null_fd();
		r = theirs[0] < 0 ? theirs[0] : 0;
	}
	if (r == 0 && theirs[1] < 0) r = make_pipe(&p->out[0].fd, &theirs[1], true);
	if (r == 0 && theirs[2] < 0) r = make_pipe(&p->out[1].fd, &theirs[2], true);
	return r < 0 ? err_set(e, r, "make the pipes of the command") : 0;
}

/* Before the start: a program whose output nobody hears would wait for ever once its pipe is full. */
int process_pipes_watch(struct process *p, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < 2 && r == 0; i++) {
		if (p->out[i].fd >= 0) r = watch_start(&p->out[i].watch, p->out[i].fd, EPOLLIN);
	}
	return r < 0 ? err_set(e, r, "wait for the output of the command") : 0;
}

/* Makes events of what was read, and shows them to those who want to know. */
static void tell(struct output_pipe *o)
{
	struct process *p = o->process;
	struct iovec parts[2];
	bool any = false;

	timer_stop(&p->gathering);
	while (log_publish(&p->log, o->stream, WIRE_DATA_MAX, parts)) {
		if (p->client) p->client->on_output(p->client, o->stream, parts);
		any = true;
	}
	if (any && p->followers) process_tell_followers(p);
}

static void on_gathered(struct timer *t)
{
	tell(&container_of(t, struct process, gathering)->out[0]);
}

static void close_output(struct output_pipe *o)
{
	tell(o);
	if (o->process->in.fd >= 0) watch_stop(&o->watch); /* may be a copy of it */
	else watch_forget(&o->watch);
	o->fd = fd_close(o->fd);
	o->owed = 0;
}

void process_pipes_close(struct process *p)
{
	for (size_t i = 0; i < 2; i++)
		close_output(&p->out[i]);
	input_close(&p->in);
}

bool process_pipes_closed(const struct process *p)
{
	return p->out[0].fd < 0 && p->out[1].fd < 0;
}

/* ---- output ---- */

/* Bytes that may be read from FD; 0 for one that is closed. */
static int bytes_in(int fd)
{
	int n = 0;

	return fd >= 0 && ioctl(fd, FIONREAD, &n) == 0 ? n : 0;
}

void process_pipes_owe(struct process *p)
{
	for (size_t i = 0; i < 2; i++) {
		int n = bytes_in(p->out[i].fd);

		if (n > 0) p->out[i].owed = (size_t)n;
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
		if (bytes_in(p->out[i].fd) > 0) return true;
	}
	return false;
}

/* Bytes of output that may be read now: as many as the client takes, or the most generous of those who are
 * waited for. */
static size_t room_of(const struct process *p)
{
	size_t room = 0;
	bool waited = false;

	if (p->client) return p->client->room(p->client);
	for (struct process_follower *f = p->followers; f; f = f->next) {
		if (!f->room) continue;
		room = MAX(room, f->room(f));
		waited = true;
	}
	return waited ? room : SIZE_MAX;
}

/* A terminal that nobody holds any more says so by an error. */
static bool is_hang_up(const struct output_pipe *o, ssize_t error)
{
	return error == -EIO && o->process->facts.kind == KIND_TERMINAL && is_finished(o);
}

/* The next event brings another try. What cannot be read in the end is told to be lost. As read_once(). */
static int note_failure(struct output_pipe *o)
{
	if (++o->failures < READ_TRIES) return 0;
	o->process->facts.bytes_lost = true;
	return -1;
}

/* Bytes that are told at once, at most. */
static size_t told_most(const struct process *p)
{
	if (p->facts.kind != KIND_TERMINAL) return WIRE_DATA_MAX;
	return MAX(MIN(p->log.bytes_room / GATHER_PART, (size_t)GATHER_MOST), (size_t)TTY_MOST);
}

/* Whether more has come, or comes in these microseconds: a few looks cost less than a wake-up. */
static bool comes_more(int fd)
{
	for (int i = 0; i < LOOKS; i++) {
		if (bytes_in(fd) > 0) return true;
	}
	return false;
}

/* N bytes came of a terminal: whether it pays to wait for more. */
static bool is_worth_gathering(struct output_pipe *o, size_t n)
{
	struct process *p = o->process;
	bool first = p->log.gathered == n, much = n >= TTY_FULL;

	if (p->facts.kind != KIND_TERMINAL || p->log.gathered + TTY_MOST > told_most(p)) return false;
	if (!much && (first || !comes_more(o->fd))) return false;
	if (!p->gathering.armed) timer_start(&p->gathering, GATHER_MS);
	return true;
}

/* Reads once. 1: there may be more; 0: not now; negative: the pipe is at its end. */
static int read_once(struct output_pipe *o)
{
	struct process *p = o->process;
	size_t room = MIN(room_of(p), told_most(p)), held = p->log.gathered;
	ssize_t n;

	if (held && room <= held) {
		tell(o);
		return 1;
	}
	if (!room) {
		if (is_finished(o)) return -1;
		block(p);
		return 0;
	}
	n = log_gather(&p->log, o->fd, room - held);
	if (n == -EAGAIN || n == -ENOMEM) return 0;
	if (n < 0 && !is_hang_up(o, n)) return note_failure(o);
	if (n <= 0) return -1;
	o->failures = 0;
	o->owed -= MIN(o->owed, (size_t)n);
	if (p->reaped) p->quiet_from = clock_ms();
	if (is_worth_gathering(o, (size_t)n)) return 1;
	tell(o);
	return (size_t)n == room || (p->facts.kind == KIND_TERMINAL && n >= TTY_FULL);
}

/* Reads what is there. Whether the pipe came to its end. */
static bool read_some(struct output_pipe *o)
{
	int reads = o->process->facts.kind == KIND_TERMINAL ? TTY_READS_A_TURN : READS_A_TURN, r = 1;

	for (int i = 0; i < reads && r == 1 && o->fd >= 0; i++)
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
	p->on_read(p, read_some(o));
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

bool process_pipes_resume(struct process *p)
{
	uint64_t waited;

	if (!p->blocked_since || !room_of(p)) return false;
	waited = clock_ms() - p->blocked_since;
	p->blocked_since = 0;
	p->drain_until += waited;
	p->quiet_from += waited;
	for (size_t i = 0; i < 2; i++) {
		if (p->out[i].fd >= 0 && p->out[i].watch.fd < 0)
			watch_insist(&p->out[i].watch, p->out[i].fd, EPOLLIN);
	}
	return true;
}
