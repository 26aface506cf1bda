/*
 * log.h - structured log: one JSON object a line on standard error.
 *
 * Theory of operation: log_…() formats the line on the caller's thread and puts it into a bounded ring; one
 * writer thread drains the ring into standard error. So a reader of our log who stops reading can never stop
 * the loop: when the ring is full the line is dropped and counted, and the count is logged once there is room
 * again. After the first line the writer waits a few milliseconds for others, unless it is a warning: to be
 * woken for each line of a busy server would cost more than its requests. Before log_start() and in programs
 * that never call it, lines are written directly.
 *
 * Never log a key, a header's value, a body, or the query string of a socket route.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* PROGRAM ("keeper") is copied into each line. Lines above LEVEL are dropped. */
int log_start(const char *program, enum log_level level);

/* Writes out what the ring holds and ends the thread. */
void log_stop(void);

bool log_level_parse(const char *text, enum log_level *ret);

/*
 * One event. EVENT is a short constant name ("sandbox_created"); then key-value pairs of text, ended by NULL:
 *     log_event(LOG_INFO, "sandbox_created", "id", id, "image", image, NULL);
 */
void log_event(enum log_level level, const char *event, ...) __attribute__((sentinel));

/* A text for a number, good until the end of the full expression's statement: log_event(…, "status",
 * LOG_U(200), NULL). */
#define LOG_U(n) (log_number((struct log_digits){{0}}.text, (uint64_t)(n)))
struct log_digits {
	char text[24];
};
const char *log_number(char text[24], uint64_t n);
