#include "base/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define RING_SIZE ((size_t)256 << 10)
#define GATHER_MS 10 /* the writer waits so long for more lines: one wake and one write for all of them */
#define LINE_MAX_ 4096

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool threaded, ending;
	bool idle;   /* the writer waits for a first line */
	bool urgent; /* what is there shall be written now */
	enum log_level level;
	char program[16];
	char *ring;
	size_t head, fill; /* where the next byte is read; how many there are */
	uint64_t dropped;
} out = {.lock = PTHREAD_MUTEX_INITIALIZER,
	 .wake = PTHREAD_COND_INITIALIZER,
	 .level = LOG_INFO,
	 .program = "tombolo"};

static const char *const level_names[] = {
	[LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};

bool log_level_parse(const char *text, enum log_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*ret = (enum log_level)i;
			return true;
		}
	}
	return false;
}

static void ring_put(const char *line, size_t len)
{
	size_t tail = (out.head + out.fill) % RING_SIZE;
	size_t first = MIN(len, RING_SIZE - tail);

	memcpy(out.ring + tail, line, first);
	memcpy(out.ring, line + first, len - first);
	out.fill += len;
}

/* Returns with lines to write, or at the end with none. */
static void wait_for_lines(void)
{
	struct timespec until;

	out.idle = true;
	while (!out.fill && !out.ending)
		pthread_cond_wait(&out.wake, &out.lock);
	out.idle = false;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += GATHER_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!out.urgent && !out.ending)
		if (pthread_cond_clockwait(&out.wake, &out.lock, CLOCK_MONOTONIC, &until)) break;
	out.urgent = false;
}

static void write_ring(void)
{
	for (size_t left = out.fill; left;) {
		size_t n = MIN(left, RING_SIZE - out.head);
		char *from = out.ring + out.head;

		pthread_mutex_unlock(&out.lock);
		/* A broken pipe or full disk loses the lines; there is nobody to tell. */
		(void)fd_write_all(STDERR_FILENO, from, n);
		pthread_mutex_lock(&out.lock);
		out.head = (out.head + n) % RING_SIZE;
		out.fill -= n;
		left -= n;
	}
}

static void *write_lines(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&out.lock);
	for (wait_for_lines(); out.fill; wait_for_lines())
		write_ring();
	pthread_mutex_unlock(&out.lock);
	return NULL;
}

int log_start(const char *program, enum log_level level)
{
	sigset_t all, before;
	int r;

	(void)snprintf(out.program, sizeof out.program, "%s", program);
	out.level = level;
	out.ring = mem_new(RING_SIZE);
	/* Signals belong to the loop's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&out.thread, NULL, write_lines, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r) return -r;
	out.threaded = true;
	return 0;
}

void log_stop(void)
{
	if (!out.threaded) return;
	pthread_mutex_lock(&out.lock);
	out.ending = true;
	pthread_cond_signal(&out.wake);
	pthread_mutex_unlock(&out.lock);
	pthread_join(out.thread, NULL);
	out.threaded = out.ending = false;
	free(out.ring);
	out.ring = NULL;
}

/* The text as the inside of a JSON string, pure ASCII: log readers never meet raw control bytes of a
 * stranger. */
static size_t add_escaped(char *line, size_t at, size_t room, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p && at + 6 < room; p++) {
		if (*p == '"' || *p == '\\') {
			line[at++] = '\\';
			line[at++] = (char)*p;
		} else if (*p < 0x20 || *p > 0x7E) {
			at += (size_t)snprintf(line + at, 7, "\\u%04x", *p);
		} else {
			line[at++] = (char)*p;
		}
	}
	return at;
}

static size_t format_line(char *line, size_t room, enum log_level level, const char *event, va_list args)
{
	char when[CLOCK_ISO_SIZE];
	const char *key;
	size_t at;

	clock_iso(clock_wall_ms(), when);
	at = (size_t)snprintf(line, room,
			      "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"event\":\"%s\"", when,
			      level_names[level], out.program, event);
	while ((key = va_arg(args, const char *))) {
		const char *value = va_arg(args, const char *);

		if (at + strlen(key) + 16 > room) continue;
		at += (size_t)snprintf(line + at, room - at, ",\"%s\":\"", key);
		at = add_escaped(line, at, room - 8, value ? value : "");
		line[at++] = '"';
	}
	line[at++] = '}';
	line[at++] = '\n';
	return at;
}

static void put_line(enum log_level level, const char *line, size_t len)
{
	if (!out.threaded) {
		(void)fd_write_all(STDERR_FILENO, line, len);
		return;
	}
	pthread_mutex_lock(&out.lock);
	if (out.dropped && RING_SIZE - out.fill > len + 128) {
		char note[96];
		int n = snprintf(note, sizeof note,
				 "{\"level\":\"warn\",\"event\":\"log_lines_dropped\",\"count\":\"%llu\"}\n",
				 (unsigned long long)out.dropped);
		ring_put(note, (size_t)n);
		out.dropped = 0;
	}
	if (RING_SIZE - out.fill >= len) ring_put(line, len);
	else out.dropped++;
	if (level <= LOG_WARN || out.fill > RING_SIZE / 2) out.urgent = true;
	if (out.idle || out.urgent) pthread_cond_signal(&out.wake);
	pthread_mutex_unlock(&out.lock);
}

void log_event(enum log_level level, const char *event, ...)
{
	char line[LINE_MAX_];
	va_list args;
	size_t len;

	if (level > out.level) return;
	va_start(args, event);
	len = format_line(line, sizeof line, level, event, args);
	va_end(args);
	put_line(level, line, len);
}

const char *log_number(char text[24], uint64_t n)
{
	(void)snprintf(text, 24, "%llu", (unsigned long long)n);
	return text;
}
