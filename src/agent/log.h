/*
 * log.h - what a process or a terminal wrote: its newest bytes and events, bounded.
 *
 * Theory of operation: a pipe is read straight into a ring of LOG_BYTES (a terminal's: LOG_TERMINAL_BYTES);
 * one read, or several, are one event (stream, length, time) in a second ring of LOG_EVENTS. Overwritten
 * bytes take their events with them: whole ones of a process; of a terminal the oldest event loses its
 * beginning and is *cut*, for its events are large and its bytes mean the same wherever they begin. Both
 * rings live in one *arena*, mapped at the first output, so a silent process costs nothing. When the process
 * has ended and its pipes are closed, log_settle() moves what is there to a block of just that size, and the
 * arena, warm, serves the next process. This memory is not charged to the sandbox: when more than LOGS_LARGE
 * processes (LOGS_TERMINAL_LARGE terminals) write at once, the others get smaller rings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define LOG_BYTES           ((size_t)1 << 20) /* a power of two */
#define LOG_EVENTS          10000u
#define LOGS_LARGE          32u
#define LOG_TERMINAL_BYTES  ((size_t)256 << 10)
#define LOGS_TERMINAL_LARGE 128u
#define LOG_SMALLER         8u /* by this both rings of the others are smaller */

enum log_kind { LOG_OF_PROCESS = 0, LOG_OF_TERMINAL = 1 };

struct log_event {
	uint64_t at_ms; /* wall clock */
	uint32_t len : 24;
	uint32_t stream : 7; /* enum wire_stream */
	uint32_t cut : 1;    /* it had more bytes, before these */
	uint32_t offset;     /* of its bytes in the ring */
};

struct log {
	struct log_event *events; /* ring; NULL before the first output */
	char *bytes;              /* ring */
	size_t bytes_room;        /* LOG_BYTES, or the exact size once settled */
	uint32_t events_room;
	uint32_t event_count;
	uint32_t event_first; /* index of the oldest */
	size_t byte_first, byte_count;
	size_t gathered;    /* of those bytes, the newest, which are no event yet */
	uint64_t first_seq; /* sequence number of the oldest event; events are numbered from 1 */
	uint64_t total;     /* bytes ever written */
	bool settled;
	enum log_kind kind;
};

/* A zeroed struct is an empty log (of a process; set KIND before the first output). Gives the memory back. */
void log_done(struct log *l);

/* Drops all that is there; the numbers of events go on, so a reader sees a gap. */
void log_drop(struct log *l);

/*
 * Reads at most MAX bytes of FD, behind what was gathered before. Bytes read, 0 at the end of the file,
 * -EAGAIN, -errno.
 */
ssize_t log_gather(struct log *l, int fd, size_t max);

/*
 * Makes one event of STREAM of what was gathered, or of its first MOST bytes; until then it is nobody's, and
 * log_settle() would lose it. PARTS (two of them) tell where those bytes lie until the next _gather; an
 * unused part is empty. false: there was nothing.
 */
bool log_publish(struct log *l, uint8_t stream, size_t most, struct iovec parts[2]);

/* No more will be read: keep the contents in as little memory as they need. */
void log_settle(struct log *l);

/* The number that the next event will get. */
uint64_t log_next_seq(const struct log *l);

/* The number of the oldest event that is retained; that of the next one when there is none. */
uint64_t log_first_seq(const struct log *l);

/* Bytes of memory it holds. */
size_t log_weight(const struct log *l);

/*
 * Walks the events: *SEQ is the number of the wanted event and is moved to the oldest one there is (*SEQ
 * grew: a gap). false: there is none yet. The parts are good until the log is written again.
 */
bool log_event_at(const struct log *l, uint64_t *seq, struct log_event *ret, struct iovec parts[2]);
