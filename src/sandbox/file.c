/*
 * file.c - opening files of a sandbox: the agent finds and opens, we get the descriptor and move the bytes.
 */
#include "sandbox/operations.h"

#include <errno.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/agent_link.h"
#include "sandbox/operation_end.h"

struct file_operation {
	struct channel channel;
	const struct file_events *events; /* NULL: the caller has what it wanted */
	void *ctx;
	bool writes;
	bool opened;
};

static void operation_free(struct file_operation *op)
{
	channel_close(&op->channel);
	free(op);
}

static int on_opened(struct file_operation *op, const struct frame *f, int *fds, size_t fd_count)
{
	struct msg_opened m;
	struct stat st;

	if (msg_opened_parse(f, &m) < 0 || op->opened || fd_count != 1) return -EPROTO;
	/* Anything but a regular file could block a thread of ours for as long as the sandbox likes. */
	if (fstat(fds[0], &st) < 0 || !S_ISREG(st.st_mode)) return -EPROTO;
	op->opened = true;
	const struct file_events *events = op->events;
	int fd = take_fd(&fds[0]);
	if (!op->writes)
		op->events = NULL; /* only the agent's `end` is missing now, and nobody waits for it */
	bool has_content = !op->writes && m.content.len && (off_t)m.content.len == st.st_size;
	events->on_opened(op->ctx, fd, &st, has_content ? m.content.at : NULL);
	return 0;
}

static int on_end(struct file_operation *op, const struct frame *f)
{
	struct operation_end end;

	if (operation_end_parse(f, &end) < 0) return -EPROTO;
	if (end.reason < END_DELETED) return -EPROTO;
	if (end.reason == END_DONE && !op->opened) return -EPROTO;
	channel_close(&op->channel);
	if (op->events) op->events->on_end(op->ctx, &end);
	operation_free(op);
	return 0;
}

static int on_message(struct channel *c, const struct frame *f, int *fds, size_t fd_count)
{
	struct file_operation *op = container_of(c, struct file_operation, channel);

	switch (f->type) {
	case MSG_opened: return on_opened(op, f, fds, fd_count);
	case MSG_end: return on_end(op, f);
	default: return message_name(f->type) ? -EPROTO : 0;
	}
}

static void on_lost(struct channel *c, enum end_reason reason, const char *text)
{
	struct file_operation *op = container_of(c, struct file_operation, channel);
	struct operation_end end = operation_end_lost(reason, text);

	if (op->events) op->events->on_end(op->ctx, &end);
	operation_free(op);
}

static const struct channel_class file_class = {.on_message = on_message, .on_lost = on_lost};

static struct file_operation *operation_new(struct agent_link *link, bool writes,
					    const struct file_events *events, void *ctx)
{
	struct file_operation *op = mem_new(sizeof *op);

	op->writes = writes;
	op->events = events;
	op->ctx = ctx;
	if (channel_open(&op->channel, link, &file_class) < 0) {
		free(op);
		return NULL;
	}
	return op;
}

struct file_operation *file_open_read(struct agent_link *link, uint32_t uid, const char *path,
				      const struct file_events *events, void *ctx)
{
	struct file_operation *op = operation_new(link, false, events, ctx);
	struct msg_open_read m = {.uid = uid, .path = wire_text_of(path)};

	if (op) CHANNEL_SEND(&op->channel, open_read, &m);
	return op;
}

struct file_operation *file_open_write(struct agent_link *link, uint32_t uid, const char *path, uint32_t mode,
				       const struct file_events *events, void *ctx)
{
	struct file_operation *op = operation_new(link, true, events, ctx);
	struct msg_open_write m = {.uid = uid, .path = wire_text_of(path), .mode = mode};

	if (op) CHANNEL_SEND(&op->channel, open_write, &m);
	return op;
}

struct file_operation *file_write_whole(struct agent_link *link, uint32_t uid, const char *path,
					uint32_t mode, const void *content, size_t len,
					const struct file_events *events, void *ctx)
{
	struct file_operation *op = operation_new(link, true, events, ctx);
	struct msg_open_write m = {.uid = uid,
				   .path = wire_text_of(path),
				   .mode = mode,
				   .whole = 1,
				   .content = {.at = content, .len = (uint32_t)len}};

	if (!op) return NULL;
	op->opened = true; /* none is due */
	if (CHANNEL_SEND_LARGE(&op->channel, open_write, &m) == 0) return op;
	operation_free(op);
	return NULL;
}

void file_operation_commit(struct file_operation *op)
{
	struct msg_commit m = {};

	CHANNEL_SEND(&op->channel, commit, &m);
	channel_await(&op->channel);
}

struct file_operation *file_operation_drop(struct file_operation *op)
{
	if (!op) return NULL;
	channel_reset(&op->channel, false);
	operation_free(op);
	return NULL;
}
