#include "sandbox/archive.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/agent_link.h"
#include "sandbox/operation_end.h"

#define PIPE_SIZE \
	(1 << 20) /* fewer switches between us and the archiver; without it things are slower, not wrong */

struct archive_operation {
	struct channel channel;
	on_archive_end *on_end;
	void *ctx;
	bool started;
};

static int on_opened(struct archive_operation *op, const struct frame *f)
{
	struct msg_opened m;

	if (msg_opened_parse(f, &m) < 0 || op->started) return -EPROTO;
	op->started = true;
	return 0;
}

static int on_ended(struct archive_operation *op, const struct frame *f)
{
	struct operation_end end;

	if (operation_end_parse(f, &end) < 0 || end.reason == END_DONE) return -EPROTO;
	if (!op->started && end.reason < END_DELETED) return -EPROTO;
	channel_close(&op->channel);
	op->on_end(op->ctx, &end);
	free(op);
	return 0;
}

static int on_message(struct channel *c, const struct frame *f, int *fds, size_t fd_count)
{
	struct archive_operation *op = container_of(c, struct archive_operation, channel);

	(void)fds, (void)fd_count;
	switch (f->type) {
	case MSG_opened: return on_opened(op, f);
	case MSG_end: return on_ended(op, f);
	default: return message_name(f->type) ? -EPROTO : 0;
	}
}

static void on_lost(struct channel *c, enum end_reason reason, const char *text)
{
	struct archive_operation *op = container_of(c, struct archive_operation, channel);
	struct operation_end end = operation_end_lost(reason, text);

	op->on_end(op->ctx, &end);
	free(op);
}

static const struct channel_class archive_class = {.on_message = on_message, .on_lost = on_lost};

/*
 * Both ends are ours at first: what flags the archiver sets on its end says nothing about our own, which so
 * never blocks the loop. The other end blocks, as programs expect.
 */
static int make_pipe(int *ret_ours, int *ret_theirs, bool we_read)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0) return -errno;
	(void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
	(void)fcntl(ends[we_read ? 0 : 1], F_SETFL, O_NONBLOCK);
	*ret_ours = ends[we_read ? 0 : 1];
	*ret_theirs = ends[we_read ? 1 : 0];
	return 0;
}

static struct archive_operation *operation_new(struct agent_link *link, on_archive_end *on_end, void *ctx)
{
	struct archive_operation *op = mem_new(sizeof *op);

	op->on_end = on_end;
	op->ctx = ctx;
	if (channel_open(&op->channel, link, &archive_class) == 0) return op;
	free(op);
	return NULL;
}

int archive_pack(struct agent_link *link, uint32_t uid, const char *const *excludes, uint32_t exclude_count,
		 on_archive_end *on_end, void *ctx, struct archive_operation **ret, int *ret_fd)
{
	const struct msg_open_pack m = {.uid = uid, .excludes = {.items = excludes, .count = exclude_count}};
	auto_close int ours = -1, theirs = -1;
	int r;

	if (WIRE_HEADER + msg_open_pack_size(&m) > WIRE_PACKET_MAX_SMALL) return -E2BIG;
	r = make_pipe(&ours, &theirs, true);
	if (r < 0) return r;
	struct archive_operation *op = operation_new(link, on_end, ctx);
	if (!op) return -EMFILE;
	agent_link_sent(link,
			LINK_SEND(agent_link_wire(link), op->channel.number, open_pack, &m, &theirs, 1));
	*ret = op;
	*ret_fd = take_fd(&ours);
	return 0;
}

int archive_unpack(struct agent_link *link, uint32_t uid, on_archive_end *on_end, void *ctx,
		   struct archive_operation **ret, int *ret_fd)
{
	const struct msg_open_unpack m = {.uid = uid};
	auto_close int ours = -1, theirs = -1;
	int r = make_pipe(&ours, &theirs, false);

	if (r < 0) return r;
	struct archive_operation *op = operation_new(link, on_end, ctx);
	if (!op) return -EMFILE;
	agent_link_sent(link,
			LINK_SEND(agent_link_wire(link), op->channel.number, open_unpack, &m, &theirs, 1));
	*ret = op;
	*ret_fd = take_fd(&ours);
	return 0;
}

void archive_break_off(struct archive_operation *op, int fd)
{
	struct msg_reset m = {0};
	struct agent_link *link = op->channel.link;

	if (link)
		agent_link_sent(link,
				LINK_SEND(agent_link_wire(link), op->channel.number, reset, &m, &fd, 1));
	channel_close(&op->channel);
	free(op);
}

struct archive_operation *archive_drop(struct archive_operation *op)
{
	if (!op) return NULL;
	channel_reset(&op->channel, false);
	free(op);
	return NULL;
}
