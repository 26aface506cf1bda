/*
 * du.c - theory of operation.
 *
 * One round walks sandboxes/RUN/data/upper of each RUN, one after the other, and then rests for REST_MS or
 * nine times as long as it took, whichever is more: it never takes more than a tenth of the disk's time, and
 * of what nobody else wants. The results are a list of the sandboxes that were there in the last round; the
 * lock protects the list and nothing slow happens under it. A sandbox that is found above its limit is said
 * to be in the log, once until it is below again: that is all a soft limit can do, for what is written is
 * written.
 *
 * Trust: the trees are strangers'. Nothing is followed, no mount is entered, and the walk goes no deeper than
 * DEPTH_MAX; what lies below is not counted.
 */
#include "keeper/du.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "isolation/instance.h"
#include "keeper/record.h"

#define REST_MS   2000
#define DEPTH_MAX 64

struct held {
	struct held *next;
	char run[UUID_LEN + 1];
	uint64_t bytes;
	bool above; /* its limit, and it was said */
	bool seen;  /* in this round */
};

struct du {
	int sandboxes_fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	atomic_bool ending;
	struct held *first;
};

/* ---- the walk ---- */

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static DIR *dir_at(int dir_fd, const char *name)
{
	auto_close int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir) (void)take_fd(&fd);
	return dir;
}

/* Takes DIR. A file with several names is counted by its part for each. */
static uint64_t bytes_below(struct du *d, DIR *dir, dev_t dev, unsigned depth)
{
	struct dirent *entry;
	uint64_t sum = 0;
	struct stat st;

	while (!atomic_load(&d->ending) && (entry = readdir(dir))) {
		DIR *below;

		if (is_dots(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (st.st_dev != dev) continue;
		sum += (uint64_t)st.st_blocks * 512 /
		       (S_ISDIR(st.st_mode) ? 1 : MAX(st.st_nlink, (nlink_t)1));
		if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX) continue;
		below = dir_at(dirfd(dir), entry->d_name);
		if (below) sum += bytes_below(d, below, dev, depth + 1);
	}
	(void)closedir(dir);
	return sum;
}

static uint64_t bytes_of(struct du *d, int dir_fd)
{
	DIR *upper = dir_at(dir_fd, "data/upper");
	struct stat st;

	if (!upper) return 0;
	if (fstat(dirfd(upper), &st) < 0) st.st_dev = 0;
	return bytes_below(d, upper, st.st_dev, 0);
}

/* 0: none, or not known. */
static uint64_t limit_of(int dir_fd, struct record *ret)
{
	struct limits limits;

	if (record_read(dir_fd, ret, NULL) < 0) return 0;
	if (ret->own.disk_bytes) return ret->own.disk_bytes;
	return instance_limits(ret->instance, &limits) < 0 ? 0 : limits.disk_bytes;
}

/* ---- what was found ---- */

static struct held *find(struct du *d, const char *run)
{
	struct held *h = d->first;

	while (h && strcmp(h->run, run) != 0)
		h = h->next;
	return h;
}

/* Whether it has just passed its limit. */
static bool keep(struct du *d, const char *run, uint64_t bytes, uint64_t limit)
{
	bool above = limit && bytes > limit, passed;
	struct held *h;

	pthread_mutex_lock(&d->lock);
	h = find(d, run);
	if (!h) {
		h = mem_new(sizeof *h);
		(void)snprintf(h->run, sizeof h->run, "%s", run);
		h->next = d->first;
		d->first = h;
	}
	passed = above && !h->above;
	h->bytes = bytes;
	h->above = above;
	h->seen = true;
	pthread_mutex_unlock(&d->lock);
	return passed;
}

static void look_at(struct du *d, const char *run)
{
	auto_close int dir_fd = openat(d->sandboxes_fd, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct record rec = {0};
	uint64_t bytes, limit;

	if (dir_fd < 0) return;
	bytes = bytes_of(d, dir_fd);
	if (atomic_load(&d->ending)) return;
	limit = limit_of(dir_fd, &rec);
	if (keep(d, run, bytes, limit))
		log_event(LOG_WARN, "disk_limit_passed", "id", rec.id, "bytes", LOG_U(bytes), "limit",
			  LOG_U(limit), NULL);
	explicit_bzero(&rec, sizeof rec);
}

static void forget_the_gone(struct du *d)
{
	pthread_mutex_lock(&d->lock);
	for (struct held **at = &d->first; *at;) {
		struct held *h = *at;

		if (h->seen) {
			h->seen = false;
			at = &h->next;
			continue;
		}
		*at = h->next;
		free(h);
	}
	pthread_mutex_unlock(&d->lock);
}

static void look_at_all(struct du *d)
{
	DIR *dir = dir_at(d->sandboxes_fd, ".");
	struct dirent *entry;

	if (!dir) return;
	while (!atomic_load(&d->ending) && (entry = readdir(dir))) {
		if (strlen(entry->d_name) == UUID_LEN) look_at(d, entry->d_name);
	}
	(void)closedir(dir);
	forget_the_gone(d);
}

/* ---- the thread ---- */

static void rest(struct du *d, uint64_t ms)
{
	uint64_t until = clock_ms() + ms;

	pthread_mutex_lock(&d->lock);
	while (!atomic_load(&d->ending) && thread_wait(&d->lock, &d->wake, until))
		;
	pthread_mutex_unlock(&d->lock);
}

static void *run(void *ctx)
{
	struct du *d = ctx;

	thread_set_lowest(gettid(), true);
	while (!atomic_load(&d->ending)) {
		uint64_t begin = clock_ms();

		look_at_all(d);
		rest(d, MAX((uint64_t)REST_MS, 9 * (clock_ms() - begin)));
	}
	return NULL;
}

int du_new(int sandboxes_fd, struct du **ret, struct err *e)
{
	struct du *d = mem_new(sizeof *d);
	int r;

	d->sandboxes_fd = sandboxes_fd;
	thread_wake_init(&d->lock, &d->wake);
	r = thread_start(&d->thread, run, d);
	if (r < 0) {
		free(d);
		return err_set(e, r, "start a thread");
	}
	*ret = d;
	return 0;
}

struct du *du_free(struct du *d)
{
	if (!d) return NULL;
	pthread_mutex_lock(&d->lock);
	atomic_store(&d->ending, true);
	pthread_cond_broadcast(&d->wake);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	forget_the_gone(d);
	forget_the_gone(d); /* the first time only takes the marks off */
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->wake);
	free(d);
	return NULL;
}

uint64_t du_bytes(struct du *d, const char *name)
{
	struct held *h;
	uint64_t bytes;

	if (!d) return 0;
	pthread_mutex_lock(&d->lock);
	h = find(d, name);
	bytes = h ? h->bytes : 0;
	pthread_mutex_unlock(&d->lock);
	return bytes;
}
