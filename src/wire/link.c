#include "wire/link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"

struct queued {
	struct queued *next;
	size_t len;
	size_t fd_count;
	int fds[WIRE_FDS_MAX];
	uint8_t bytes[];
};

struct link {
	int fd;
	struct queued *first, **last;
	size_t queued_bytes;
	bool dead;
};

/* One per process, not per link: idle links cost nothing, and a packet is handled before the next is read. */
static uint8_t read_room[WIRE_PACKET_MAX];

struct link *link_new(int fd)
{
	struct link *l = mem_new(sizeof *l);

	(void)fd_set_nonblocking(fd);
	l->fd = fd;
	l->last = &l->first;
	return l;
}

static void queued_free(struct queued *q)
{
	for (size_t i = 0; i < q->fd_count; i++)
		fd_close(q->fds[i]);
	free(q);
}

struct link *link_free(struct link *l)
{
	if (!l) return NULL;
	while (l->first) {
		struct queued *q = l->first;

		l->first = q->next;
		queued_free(q);
	}
	fd_close(l->fd);
	free(l);
	return NULL;
}

int link_fd(const struct link *l)
{
	return l->fd;
}

bool link_wants_out(const struct link *l)
{
	return l->first != NULL;
}

/* ---- reading ---- */

/* Collects the descriptors of MSG into FDS. They are ours whatever happens next. */
static size_t take_fds(struct msghdr *msg, int fds[WIRE_FDS_MAX])
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (count < WIRE_FDS_MAX) fds[count++] = fd;
			else fd_close(fd);
		}
	}
	return count;
}

/* 1: a packet was handled; 0: there is none; negative as link_read(). */
static int read_one(struct link *l, on_packet *handle, void *ctx)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
	} control;
	struct iovec io = {.iov_base = read_room, .iov_len = sizeof read_room};
	struct msghdr msg = {.msg_iov = &io,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof control.room};
	int fds[WIRE_FDS_MAX];
	size_t fd_count;
	ssize_t n;
	int r;

	do
		n = recvmsg(l->fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0) return errno == EAGAIN ? 0 : -EPIPE;
	fd_count = take_fds(&msg, fds);
	if (n == 0) r = -EPIPE;
	else if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) r = -EPROTO;
	else r = handle(ctx, read_room, (size_t)n, fds, fd_count);
	for (size_t i = 0; i < fd_count; i++)
		fd_close(fds[i]);
	if (r == -EPIPE) return r;
	return r < 0 ? -EPROTO : 1;
}

int link_read(struct link *l, unsigned budget, on_packet *handle, void *ctx)
{
	while (budget--) {
		int r = read_one(l, handle, ctx);

		if (r <= 0) return r;
	}
	return 0;
}

/* ---- writing ---- */

/* 0: the kernel has it; -EAGAIN: not now; -EPIPE: never. */
static int send_now(struct link *l, const struct iovec *parts, size_t count, const int *fds, size_t fd_count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
	} control;
	struct msghdr msg = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
	ssize_t n;

	if (fd_count) {
		memset(&control, 0, sizeof control);
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
	}
	do
		n = sendmsg(l->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0) return 0;
	return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? -EAGAIN : -EPIPE;
}

static int enqueue(struct link *l, const struct iovec *parts, size_t count, const int *fds, size_t fd_count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += parts[i].iov_len;
	if (l->queued_bytes + len > LINK_QUEUE_MAX) {
		l->dead = true;
		return -ENOBUFS;
	}
	struct queued *q = mem_new(sizeof *q + len);
	for (size_t i = 0; i < count; i++) {
		memcpy(q->bytes + q->len, parts[i].iov_base, parts[i].iov_len);
		q->len += parts[i].iov_len;
	}
	for (size_t i = 0; i < fd_count; i++) {
		q->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (q->fds[i] < 0) {
			int r = -errno;

			q->fd_count = i;
			queued_free(q);
			return r;
		}
	}
	q->fd_count = fd_count;
	*l->last = q;
	l->last = &q->next;
	l->queued_bytes += len;
	return 0;
}

static int send_parts(struct link *l, const struct iovec *parts, size_t count, const int *fds,
		      size_t fd_count)
{
	int r;

	if (l->dead) return -ENOBUFS;
	r = l->first ? -EAGAIN : send_now(l, parts, count, fds, fd_count);
	if (r == -EAGAIN) r = enqueue(l, parts, count, fds, fd_count);
	return r;
}

int link_send(struct link *l, const struct packet *p, const int *fds, size_t fd_count)
{
	struct iovec part = {.iov_base = p->bytes, .iov_len = p->len};

	return send_parts(l, &part, 1, fds, fd_count);
}

static uint8_t *put_number(uint8_t *at, uint64_t number, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		*at++ = (uint8_t)(number >> (8 * i));
	return at;
}

/*
 * A frame that ends in a field of bytes, which are PARTS: the same as msg_..._add() would write. HEAD has
 * room for the frame's header, then the fields before the bytes up to AT, then room for their length.
 */
static int send_bytes(struct link *l, uint32_t channel, uint16_t type, uint8_t *head, uint8_t *at,
		      const struct iovec *parts, size_t count)
{
	struct iovec all[6];
	uint32_t len = 0;

	if (count > ARRAY_LEN(all) - 2) return -EMSGSIZE;
	for (size_t i = 0; i < count; i++) {
		all[1 + i] = parts[i];
		len += (uint32_t)parts[i].iov_len;
	}
	if (len > WIRE_DATA_MAX) return -EMSGSIZE;
	at = put_number(at, len, 4);
	frame_header_write(head, channel, type, 0, (uint32_t)(at - head) - WIRE_HEADER + len + 1);
	all[0] = (struct iovec){.iov_base = head, .iov_len = (size_t)(at - head)};
	all[1 + count] = (struct iovec){.iov_base = (char *)"", .iov_len = 1};
	return send_parts(l, all, count + 2, NULL, 0);
}

int link_send_data(struct link *l, uint32_t channel, enum wire_stream stream, const struct iovec *parts,
		   size_t count)
{
	uint8_t head[WIRE_HEADER + 1 + 4];

	return send_bytes(l, channel, MSG_data, head, put_number(head + WIRE_HEADER, stream, 1), parts,
			  count);
}

int link_send_log(struct link *l, uint32_t channel, uint64_t seq, uint64_t at_ms, enum wire_stream stream,
		  const struct iovec *parts, size_t count)
{
	uint8_t head[WIRE_HEADER + 8 + 8 + 1 + 4], *at = head + WIRE_HEADER;

	at = put_number(at, seq, 8);
	at = put_number(at, at_ms, 8);
	at = put_number(at, stream, 1);
	return send_bytes(l, channel, MSG_log, head, at, parts, count);
}

int link_flush(struct link *l)
{
	if (l->dead) return -ENOBUFS;
	while (l->first) {
		struct queued *q = l->first;
		struct iovec part = {.iov_base = q->bytes, .iov_len = q->len};
		int r = send_now(l, &part, 1, q->fds, q->fd_count);

		if (r == -EAGAIN) return 0;
		if (r < 0) return r;
		l->queued_bytes -= q->len;
		l->first = q->next;
		if (!l->first) l->last = &l->first;
		queued_free(q);
	}
	return 0;
}

/* ---- messages larger than a packet ---- */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int link_send_spilled(struct link *l, const struct packet *p)
{
	struct frame_reader reader = frame_reader_of(p->bytes, p->len);
	uint8_t head[WIRE_HEADER];
	struct frame f;
	int r;

	if (frame_reader_next(&reader, &f) != 1) return -EPROTO;
	if (f.len > WIRE_SPILL_MAX) return -E2BIG;
	auto_close int fd = memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) return -errno;
	r = fd_write_all(fd, f.payload, f.len);
	if (r < 0) return r;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0) return -errno;
	frame_header_write(head, f.channel, f.type, FRAME_SPILLED, 0);
	return link_send(l, &(struct packet){.bytes = head, .room = sizeof head, .len = sizeof head}, &fd, 1);
}

int frame_unspill(struct frame *f, int fd, void **ret_memory)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	/* Sealed, so that what was judged here cannot change under the reader. */
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0) return -EPROTO;
	if (st.st_size < 0 || st.st_size > (off_t)WIRE_SPILL_MAX) return -E2BIG;
	auto_free uint8_t *memory = malloc((size_t)st.st_size + 1);
	if (!memory) return -ENOMEM;
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = pread(fd, memory + at, (size_t)(st.st_size - at), at);

		if (n <= 0) return -EPROTO;
		at += n;
	}
	f->payload = memory;
	f->len = (uint32_t)st.st_size;
	f->flags &= (uint16_t)~FRAME_SPILLED;
	*ret_memory = take_ptr(memory);
	return 0;
}
