/*
 * trash.c - the walk.
 *
 * A sandbox can make its tree as deep as it likes, so the walk goes no deeper than DEPTH_MAX: what lies below
 * is moved up into the trash itself and gets a walk of its own. Every descriptor is opened from its parent
 * with O_NOFOLLOW.
 */
#include "keeper/trash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

#define DEPTH_MAX 32
#define TRIES     3 /* rounds in which nothing goes, before that is told; or attempts to read a directory */

struct closing {
	struct closing *next;
	int fd;
};

struct trash {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* something came, or it is time to end; and back: the trash is empty */
	pid_t tid;           /* the thread's, once it runs */
	bool busy, again, awaited;
	struct closing *closing;
	atomic_bool ending;
	atomic_ullong next; /* number of the next name */
	size_t progress;    /* entries deleted or moved up; the thread's own */
};

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static int move_in(struct trash *t, int dir_fd, const char *name)
{
	char fresh[32];

	for (;;) {
		(void)snprintf(fresh, sizeof fresh, "%llu", atomic_fetch_add(&t->next, 1));
		if (renameat2(dir_fd, name, t->fd, fresh, RENAME_NOREPLACE) == 0) return 0;
		if (errno != EEXIST) return errno == ENOENT ? 0 : -errno;
	}
}

static void empty_dir(struct trash *t, int dir_fd, int depth);

static bool delete_simple(int dir_fd, const char *name)
{
	if (unlinkat(dir_fd, name, 0) == 0) return true;
	return errno == EISDIR && unlinkat(dir_fd, name, AT_REMOVEDIR) == 0;
}

static void delete_entry(struct trash *t, int dir_fd, const char *name, int depth)
{
	int fd;

	if (delete_simple(dir_fd, name)) {
		t->progress++;
		return;
	}
	if (depth == DEPTH_MAX) {
		if (move_in(t, dir_fd, name) == 0) t->progress++;
		return;
	}
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) return;
	empty_dir(t, fd, depth + 1);
	if (delete_simple(dir_fd, name)) t->progress++;
}

/* Takes DIR_FD. */
static void empty_dir(struct trash *t, int dir_fd, int depth)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *entry;

	if (!dir) {
		fd_close(dir_fd);
		return;
	}
	while (!atomic_load(&t->ending) && (entry = readdir(dir))) {
		if (!is_dots(entry->d_name)) delete_entry(t, dir_fd, entry->d_name, depth);
	}
	closedir(dir);
}

static bool is_empty(int trash_fd)
{
	auto_close int fd = openat(trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	bool empty = true;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) return false;
	(void)take_fd(&fd);
	while (empty && (entry = readdir(dir)))
		empty = is_dots(entry->d_name);
	closedir(dir);
	return empty;
}

/* In rounds, because deep trees come back as new entries, and because what failed once may work now. Whether
 * all is gone. */
static bool empty_trash(struct trash *t)
{
	for (int idle = 0; idle < TRIES && !atomic_load(&t->ending); idle++) {
		int fd = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		t->progress = 0;
		if (fd >= 0) empty_dir(t, fd, 0);
		if (is_empty(t->fd)) return true;
		if (t->progress) idle = -1;
	}
	return false;
}

static void close_all(struct closing *first)
{
	while (first) {
		struct closing *c = first;

		first = c->next;
		fd_close(c->fd);
		free(c);
	}
}

static void *run(void *ctx)
{
	struct trash *t = ctx;
	struct closing *closing;
	bool emptied;

	pthread_mutex_lock(&t->lock);
	t->tid = gettid();
	/* Lowest priorities there are: sandboxes must not feel that others are deleted. */
	if (!t->awaited) thread_set_lowest(t->tid, true);
	while (!atomic_load(&t->ending)) {
		if (!t->again) {
			t->busy = false;
			pthread_cond_broadcast(&t->wake);
			pthread_cond_wait(&t->wake, &t->lock);
			continue;
		}
		t->again = false;
		t->busy = true;
		closing = take_ptr(t->closing);
		pthread_mutex_unlock(&t->lock);
		close_all(closing);
		emptied = empty_trash(t);
		pthread_mutex_lock(&t->lock);
		/* What came meanwhile has a round of its own before it. */
		if (!emptied && !t->again && !atomic_load(&t->ending))
			log_event(LOG_WARN, "trash_stays", NULL);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

int trash_new(int trash_fd, struct trash **ret, struct err *e)
{
	struct trash *t = mem_new(sizeof *t);
	int r;

	t->fd = trash_fd;
	t->again = t->busy = true;
	thread_wake_init(&t->lock, &t->wake);
	r = thread_start(&t->thread, run, t);
	if (r < 0) {
		free(t);
		return err_set(e, r, "start a thread");
	}
	*ret = t;
	return 0;
}

static void wake(struct trash *t)
{
	t->again = t->busy = true;
	pthread_cond_broadcast(&t->wake);
}

void trash_close(struct trash *t, int fd)
{
	struct closing *c;

	if (fd < 0) return;
	c = mem_new(sizeof *c);
	c->fd = fd;
	pthread_mutex_lock(&t->lock);
	c->next = t->closing;
	t->closing = c;
	wake(t);
	pthread_mutex_unlock(&t->lock);
}

int trash_put(struct trash *t, int dir_fd, const char *name)
{
	int r = move_in(t, dir_fd, name);

	if (r < 0) return r;
	pthread_mutex_lock(&t->lock);
	wake(t);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

static void put_all(struct trash *t, int dir_fd)
{
	auto_close int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) return;
	(void)take_fd(&fd);
	while ((entry = readdir(dir))) {
		if (!is_dots(entry->d_name)) (void)trash_put(t, dir_fd, entry->d_name);
	}
	closedir(dir);
}

void trash_put_all(struct trash *t, int dir_fd)
{
	for (int i = 0; i < TRIES && !is_empty(dir_fd); i++)
		put_all(t, dir_fd);
}

struct trash *trash_free(struct trash *t, uint64_t ms)
{
	uint64_t until = clock_ms() + ms;

	if (!t) return NULL;
	pthread_mutex_lock(&t->lock);
	/* Now somebody waits for it. A thread that has not begun yet will not lower itself. */
	t->awaited = true;
	if (t->tid) thread_set_lowest(t->tid, false);
	while (t->busy && thread_wait(&t->lock, &t->wake, until))
		;
	atomic_store(&t->ending, true);
	pthread_cond_broadcast(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	close_all(t->closing);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->wake);
	free(t);
	return NULL;
}
