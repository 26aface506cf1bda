#include "keeper/issued.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_FUNCTION HASH_FNV
#include <uthash.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#define LINE_ROOM  320
#define IDLE_LINES 1024 /* that no longer count, beyond as many as do */

struct issued_id {
	struct issued_wish wish;
	UT_hash_handle hh;
};

struct issued {
	int dir_fd, fd; /* FD: the journal's end; -1: the disk is full, or worse */
	struct issued_id *first;
	size_t lines;
};

/* ---- lines ---- */

static int format_line(const struct issued_wish *w, char line[LINE_ROOM])
{
	return snprintf(line, LINE_ROOM, "+%s %s %" PRIu64 " %u %u %" PRIu64 "\n", w->id,
			w->instance[0] ? w->instance : "-", w->memory_bytes, w->pids, w->cpu_milli,
			w->disk_bytes);
}

static bool is_instance(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

char issued_parse_line(const char *line, struct issued_wish *ret)
{
	struct issued_wish w = {0};
	int end = -1;

	if (line[0] == '-') {
		if (!id_is_sandbox(line + 1, strlen(line + 1))) return 0;
		memcpy(w.id, line + 1, strlen(line + 1));
		*ret = w;
		return '-';
	}
	if (line[0] != '+') return 0;
	/* The widths are SANDBOX_ID_MAX and INSTANCE_MAX. */
	(void)sscanf(line + 1, "%128s %32s %20" SCNu64 " %10u %10u %20" SCNu64 "%n", w.id, w.instance,
		     &w.memory_bytes, &w.pids, &w.cpu_milli, &w.disk_bytes, &end);
	if (end < 0 || line[1 + end] || !id_is_sandbox(w.id, strlen(w.id)) || !is_instance(w.instance))
		return 0;
	if (strcmp(w.instance, "-") == 0) w.instance[0] = '\0';
	*ret = w;
	return '+';
}

/* ---- in memory ---- */

static struct issued_id *find(const struct issued *all, const char *id)
{
	struct issued_id *one;

	HASH_FIND_STR(all->first, id, one);
	return one;
}

static void drop(struct issued *all, struct issued_id *one)
{
	HASH_DEL(all->first, one);
	free(one);
}

static void remember(struct issued *all, const struct issued_wish *wish)
{
	struct issued_id *one = find(all, wish->id);

	if (one) drop(all, one);
	if (HASH_COUNT(all->first) >= ISSUED_MAX) drop(all, all->first);
	one = mem_new(sizeof *one);
	one->wish = *wish;
	HASH_ADD_STR(all->first, wish.id, one);
}

/* ---- on disk ---- */

static void load(struct issued *all)
{
	int fd = openat(all->dir_fd, "issued", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
	char line[LINE_ROOM];
	struct issued_wish wish;

	if (!file) {
		fd_close(fd);
		return;
	}
	while (fgets(line, sizeof line, file)) {
		size_t len = strcspn(line, "\n");
		bool whole = line[len] == '\n';

		line[len] = '\0';
		switch (whole ? issued_parse_line(line, &wish) : 0) {
		case '+': remember(all, &wish); break;
		case '-':
			if (find(all, wish.id)) drop(all, find(all, wish.id));
			break;
		}
	}
	(void)fclose(file);
}

static int write_all(struct issued *all, int fd)
{
	char line[LINE_ROOM];
	int r = 0;

	for (struct issued_id *one = all->first; one && r == 0; one = one->hh.next)
		r = fd_write_all(fd, line, (size_t)format_line(&one->wish, line));
	return r;
}

static int rewrite(struct issued *all)
{
	auto_close int fd =
		openat(all->dir_fd, "issued.new", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : write_all(all, fd);

	if (r == 0 && renameat(all->dir_fd, "issued.new", all->dir_fd, "issued") < 0) r = -errno;
	if (r < 0) return r;
	fd_close(all->fd);
	all->fd = take_fd(&fd);
	all->lines = HASH_COUNT(all->first);
	return 0;
}

static void append(struct issued *all, const char *line, size_t len)
{
	int r = all->fd < 0 ? -EBADF : 0;

	if (r == 0 && write(all->fd, line, len) != (ssize_t)len) r = -EIO;
	/* A line that was cut would swallow the next one. */
	if (r < 0 || ++all->lines > 2 * HASH_COUNT(all->first) + IDLE_LINES) r = rewrite(all);
	if (r < 0) log_event(LOG_WARN, "issued_ids_not_written", "why", strerror(-r), NULL);
}

/* ---- the calls ---- */

int issued_open(int dir_fd, struct issued **ret, struct err *e)
{
	struct issued *all = mem_new(sizeof *all);
	int r;

	all->dir_fd = dir_fd;
	all->fd = -1;
	load(all);
	r = rewrite(all);
	if (r < 0) {
		issued_free(all);
		return err_set(e, r, "write the list of issued ids");
	}
	*ret = all;
	return 0;
}

struct issued *issued_free(struct issued *all)
{
	if (!all) return NULL;
	while (all->first)
		drop(all, all->first);
	fd_close(all->fd);
	free(all);
	return NULL;
}

void issued_add(struct issued *all, const struct issued_wish *wish)
{
	char line[LINE_ROOM];

	remember(all, wish);
	append(all, line, (size_t)format_line(wish, line));
}

void issued_forget(struct issued *all, const char *id)
{
	struct issued_id *one = find(all, id);
	char line[LINE_ROOM];

	if (!one) return;
	drop(all, one);
	append(all, line, (size_t)snprintf(line, sizeof line, "-%s\n", id));
}

void issued_each(const struct issued *all, void (*each)(const struct issued_wish *wish, void *ctx), void *ctx)
{
	for (const struct issued_id *one = all->first; one; one = one->hh.next)
		each(&one->wish, ctx);
}
