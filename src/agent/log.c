#include "agent/log.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"

#define EVENTS_SIZE ((LOG_EVENTS * sizeof(struct log_event) + 4095) & ~(size_t)4095)
#define WARM_BYTES  ((size_t)32 << 10) /* of a spare arena that stay resident */

/* The arenas of one kind of log. */
static struct arenas {
	size_t bytes;
	unsigned large; /* so many are of full size */
	unsigned used;  /* of either size */
	char *spare;    /* the last one that was given back: its first pages are mapped in already */
} arenas[] = {[LOG_OF_PROCESS] = {.bytes = LOG_BYTES, .large = LOGS_LARGE},
	      [LOG_OF_TERMINAL] = {.bytes = LOG_TERMINAL_BYTES, .large = LOGS_TERMINAL_LARGE}};

static bool arena_take(struct log *l)
{
	struct arenas *of = &arenas[l->kind];
	unsigned part = of->used < of->large ? 1 : LOG_SMALLER;
	char *a = part == 1 ? take_ptr(of->spare) : NULL;

	if (!a) {
		a = mmap(NULL, (EVENTS_SIZE + of->bytes) / part, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (a == MAP_FAILED) return false;
	of->used++;
	l->events = (struct log_event *)a;
	l->events_room = LOG_EVENTS / part;
	l->bytes = a + EVENTS_SIZE / part;
	l->bytes_room = of->bytes / part;
	if (!l->first_seq) l->first_seq = 1;
	return true;
}

static void arena_give(struct log *l)
{
	struct arenas *of = &arenas[l->kind];
	char *a = (char *)l->events;
	bool is_large = l->bytes_room == of->bytes;

	of->used--;
	if (of->spare || !is_large) {
		(void)munmap(a, (EVENTS_SIZE + of->bytes) / (is_large ? 1 : LOG_SMALLER));
		return;
	}
	if (l->total > WARM_BYTES) {
		(void)madvise(a + 4096, EVENTS_SIZE - 4096, MADV_DONTNEED);
		(void)madvise(a + EVENTS_SIZE + WARM_BYTES, of->bytes - WARM_BYTES, MADV_DONTNEED);
	}
	of->spare = a;
}

void log_done(struct log *l)
{
	log_drop(l);
	*l = (struct log){0};
}

void log_drop(struct log *l)
{
	struct log rest = {.first_seq = log_next_seq(l), .total = l->total, .kind = l->kind};

	if (!l->events) return;
	if (l->settled) free(l->events);
	else arena_give(l);
	*l = rest;
}

static void drop_oldest(struct log *l)
{
	const struct log_event *e = &l->events[l->event_first];

	l->byte_first = (l->byte_first + e->len) % l->bytes_room;
	l->byte_count -= e->len;
	l->event_first = (l->event_first + 1) % l->events_room;
	l->event_count--;
	l->first_seq++;
}

/* Makes room for LEN bytes of what was overwritten, or for a little more. */
static void forget(struct log *l, size_t len)
{
	struct log_event *e = &l->events[l->event_first];

	if (l->kind != LOG_OF_TERMINAL || e->len <= len) {
		drop_oldest(l);
		return;
	}
	e->cut = 1;
	e->len -= (uint32_t)len;
	e->offset = (uint32_t)((e->offset + len) % l->bytes_room);
	l->byte_first = e->offset;
	l->byte_count -= len;
}

/* Where LEN bytes from OFFSET on lie in the ring. */
static void ring_parts(const struct log *l, size_t offset, size_t len, struct iovec parts[2])
{
	size_t until_wrap = MIN(len, l->bytes_room - offset);

	parts[0] = (struct iovec){.iov_base = l->bytes + offset, .iov_len = until_wrap};
	parts[1] = (struct iovec){.iov_base = l->bytes, .iov_len = len - until_wrap};
}

ssize_t log_gather(struct log *l, int fd, size_t max)
{
	struct iovec parts[2];
	ssize_t n;

	if (!l->events && !arena_take(l)) return -ENOMEM;
	max = MIN(max, l->bytes_room - l->gathered);
	ring_parts(l, (l->byte_first + l->byte_count) % l->bytes_room, max, parts);
	do
		n = readv(fd, parts, parts[1].iov_len ? 2 : 1);
	while (n < 0 && errno == EINTR);
	if (n <= 0) return n < 0 ? -errno : 0;
	l->byte_count += (size_t)n;
	l->gathered += (size_t)n;
	l->total += (uint64_t)n;
	/* The oldest bytes are overwritten by now; their events go before anybody can look. */
	while (l->byte_count > l->bytes_room)
		forget(l, l->byte_count - l->bytes_room);
	return n;
}

bool log_publish(struct log *l, uint8_t stream, size_t most, struct iovec parts[2])
{
	size_t len = MIN(l->gathered, most), offset;

	if (!len) return false;
	if (l->event_count == l->events_room) drop_oldest(l);
	offset = (l->byte_first + l->byte_count - l->gathered) % l->bytes_room;
	l->events[(l->event_first + l->event_count++) % l->events_room] = (struct log_event){
		.at_ms = clock_wall_ms(), .len = (uint32_t)len, .stream = stream, .offset = (uint32_t)offset};
	l->gathered -= len;
	ring_parts(l, offset, len, parts);
	return true;
}

void log_settle(struct log *l)
{
	size_t events_size = l->event_count * sizeof *l->events;
	struct iovec parts[2];
	struct log_event *events;
	char *bytes;

	if (!l->events || l->settled) return;
	if (!l->event_count) {
		log_drop(l);
		return;
	}
	events = mem_new(events_size + l->byte_count);
	bytes = (char *)events + events_size;
	for (uint32_t i = 0, offset = 0; i < l->event_count; i++) {
		events[i] = l->events[(l->event_first + i) % l->events_room];
		events[i].offset = offset;
		offset += events[i].len;
	}
	ring_parts(l, l->byte_first, l->byte_count, parts);
	memcpy(bytes, parts[0].iov_base, parts[0].iov_len);
	memcpy(bytes + parts[0].iov_len, parts[1].iov_base, parts[1].iov_len);
	arena_give(l);
	l->events = events;
	l->events_room = l->event_count;
	l->event_first = 0;
	l->bytes = bytes;
	l->bytes_room = l->byte_count;
	l->byte_first = 0;
	l->settled = true;
}

size_t log_weight(const struct log *l)
{
	if (!l->events) return 0;
	return l->event_count * sizeof *l->events +
	       (l->settled ? l->byte_count : MIN(l->total, (uint64_t)l->bytes_room));
}

uint64_t log_first_seq(const struct log *l)
{
	return l->first_seq ? l->first_seq : 1;
}

uint64_t log_next_seq(const struct log *l)
{
	return log_first_seq(l) + l->event_count;
}

bool log_event_at(const struct log *l, uint64_t *seq, struct log_event *ret, struct iovec parts[2])
{
	*seq = MAX(*seq, log_first_seq(l));
	if (*seq >= log_next_seq(l)) return false;
	*ret = l->events[(l->event_first + *seq - l->first_seq) % l->events_room];
	ring_parts(l, ret->offset, ret->len, parts);
	return true;
}
