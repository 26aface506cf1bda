/* files.h - inside the room: what the file routes of all dialects share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_link;
struct loop;
struct request;

/* Answers the request with the file PATH of its sandbox, as GET does. */
void file_answer(struct request *rq, const char *path);

/* ---- a file that is written piece by piece ---- */

/*
 * Theory of operation: the agent opens a temporary sibling and hands us its descriptor. Two buffers take
 * turns: the loop fills one while a thread writes the other, so a slow disk delays nobody else and a fast one
 * keeps the client busy. After the last byte the agent is told to put the file in its place, and only its
 * word means success.
 *
 * What may never happen: memory freed while the thread uses it. So a writer that nobody wants any more is
 * only marked, and goes when nothing of it is under way.
 */
struct file_writer;

struct file_writer_events {
	void (*on_room)(void *ctx);                      /* it is open, or has room again: more may come */
	void (*on_done)(void *ctx, const char *failure); /* the last: NULL, in its place; or why not */
};

/* Borrows EVENTS. NULL: too much goes on in this sandbox. MODE is for a file that is new. */
struct file_writer *file_writer_new(struct loop *loop, struct agent_link *link, uint32_t uid,
				    const char *path, uint32_t mode, const struct file_writer_events *events,
				    void *ctx);

/* Copies. Whether more may come at once; otherwise on_room tells. What is in hand may come all the same, up
 * to 512 KiB. */
bool file_writer_add(struct file_writer *w, const void *bytes, size_t len);

/* That was the last byte; on_done follows. */
void file_writer_finish(struct file_writer *w);

/* Nobody wants it any more; unless it is in its place already, it never gets there. Returns NULL; NULL is
 * fine. */
struct file_writer *file_writer_drop(struct file_writer *w);
