/*
 * file.c - the channels that hand out files: we open as the sandbox's user and pass the descriptor; the front
 * moves bytes.
 *
 * Trust: the path was checked by the front as text only. What it means is decided here, by the kernel: we
 * *are* inside, so nothing of the host is in reach; magic links are refused; and only regular files on the
 * sandbox's own file systems are given away, judged by fstat before anybody gets the descriptor.
 *
 * A write goes to a temporary sibling of the target, which `commit` renames over it: a client that vanishes
 * leaves the old file whole. A symbolic link as the last part is followed first, so that the link stays and
 * its target is replaced.
 *
 * Small files travel in the messages: to hand a descriptor to a thread costs the front more than their bytes,
 * and nobody but this sandbox waits if its disk is slow.
 */
#include "agent/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_place.h"
#include "agent/peers.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define SMALL_FILE 8192 /* goes along with `opened`; must fit into the outbox */

/* ---- open_read ---- */

static int judge(int fd, const char *path, struct stat *ret_st, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0) return err_set(e, -errno, "'%.160s'", path);
	if (S_ISDIR(st.st_mode)) return err_set(e, -EISDIR, "'%.160s'", path);
	if (!S_ISREG(st.st_mode)) return err_say(e, -EINVAL, "'%.160s' is not a regular file", path);
	if (!file_place_is_ours(fd, &st))
		return err_say(e, -EXDEV, "'%.160s' is not on the sandbox's disk", path);
	*ret_st = st;
	return 0;
}

static struct msg_opened facts_of(const struct stat *st)
{
	return (struct msg_opened){.process_id = wire_text_of(""),
				   .size = (uint64_t)st->st_size,
				   .mode = st->st_mode & 07777,
				   .mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u +
					       (uint64_t)st->st_mtim.tv_nsec};
}

/* How many bytes of a small file are in ROOM: all or none. */
static uint32_t read_small(int fd, const struct stat *st, char room[SMALL_FILE])
{
	if (st->st_size > SMALL_FILE) return 0;
	return pread(fd, room, SMALL_FILE, 0) == st->st_size ? (uint32_t)st->st_size : 0;
}

int file_read_open(struct peer *p, const struct frame *f)
{
	char content[SMALL_FILE];
	struct channel once;
	struct err e = ERR_NONE;
	struct msg_open_read m;
	struct stat st = {0};
	int r;

	if (msg_open_read_parse(f, &m) < 0) return -EPROTO;
	/* O_NONBLOCK: a fifo planted under this name must not park the whole agent in open(). */
	auto_close int fd = file_place_open(m.uid, m.path.at, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	r = fd < 0 ? err_set(&e, fd, "'%.160s'", m.path.at) : judge(fd, m.path.at, &st, &e);
	if (r < 0) {
		peer_refuse(p, f->channel, r, e.text);
		return 0;
	}
	once = (struct channel){.peer = p, .id = f->channel};
	struct msg_opened opened = facts_of(&st);
	struct msg_end end = {.reason = END_DONE, .text = wire_text_of("")};
	opened.content = (struct wire_text){.at = content, .len = read_small(fd, &st, content)};
	channel_send_opened(&once, &opened, fd, &end);
	return 0;
}

/* ---- open_write ---- */

struct file_write {
	struct channel channel;
	struct file_place place;
	uint32_t uid;
	int fd;             /* of the temporary file */
	char temporary[40]; /* its name */
	mode_t mode;
};

/* TEXT is not a path of ours: the client's own words are enough for it. */
static void file_write_free(struct file_write *w, bool keep)
{
	if (!keep && w->fd >= 0) file_place_unlink(&w->place, w->uid, w->temporary);
	fd_close(w->fd);
	file_place_done(&w->place);
	channel_close(&w->channel);
	free(w);
}

/* Puts the file in place, unless R says that it is not complete. */
static void finish(struct file_write *w, int r)
{
	struct msg_end m = {.reason = END_DONE, .text = wire_text_of("")};

	if (r == 0 && fchmod(w->fd, w->mode) < 0) r = -errno;
	if (r == 0) r = file_place_rename(&w->place, w->uid, w->temporary);
	if (r < 0) peer_refuse(w->channel.peer, w->channel.id, r, strerrordesc_np(-r));
	else CHANNEL_SEND(&w->channel, end, &m);
	file_write_free(w, r == 0);
}

static int on_write_frame(struct channel *c, const struct frame *f)
{
	struct file_write *w = container_of(c, struct file_write, channel);

	switch (f->type) {
	case MSG_commit: finish(w, 0); return 0;
	case MSG_reset: file_write_free(w, false); return 0;
	default: return -EPROTO;
	}
}

static void on_write_lost(struct channel *c)
{
	file_write_free(container_of(c, struct file_write, channel), false);
}

static const struct channel_ops write_ops = {.on_frame = on_write_frame, .on_lost = on_write_lost};

static int begin(struct file_write *w, const struct msg_open_write *m, struct err *e)
{
	struct stat st;
	int r = file_place_find(m->uid, m->path.at, &w->place);

	if (r < 0) return err_set(e, r, "'%.160s'", m->path.at);
	w->uid = m->uid;
	w->mode = m->mode ? m->mode & 0777 : 0644;
	if (fstatat(w->place.dir_fd, w->place.name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode)) return err_set(e, -EISDIR, "'%.160s'", m->path.at);
		if (!S_ISREG(st.st_mode))
			return err_say(e, -EINVAL, "'%.160s' is not a regular file", m->path.at);
		/* Bits that lend the owner's power are not passed on to another owner. */
		w->mode = st.st_mode & (st.st_uid == m->uid ? 07777 : 0777);
	}
	w->fd = file_place_create(&w->place, w->uid, w->temporary, sizeof w->temporary);
	return w->fd < 0 ? err_set(e, w->fd, "'%.160s'", m->path.at) : 0;
}

int file_write_open(struct peer *p, const struct frame *f)
{
	struct file_write *w = mem_new(sizeof *w);
	struct msg_open_write m;
	struct err e = ERR_NONE;
	struct stat st = {0};

	w->fd = w->place.dir_fd = -1;
	if (msg_open_write_parse(f, &m) < 0 || channel_open(&w->channel, p, f->channel, &write_ops) < 0) {
		free(w);
		return -EPROTO;
	}
	if (begin(w, &m, &e) < 0) {
		peer_refuse(p, f->channel, e.code, e.text);
		file_write_free(w, false);
		return 0;
	}
	if (m.whole) {
		finish(w, fd_write_all(w->fd, m.content.at, m.content.len));
		return 0;
	}
	st.st_mode = w->mode;
	struct msg_opened opened = facts_of(&st);
	channel_send_opened(&w->channel, &opened, w->fd, NULL);
	return 0;
}
