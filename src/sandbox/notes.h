/* notes.h - inside the room: what is known of ids, also of those without a sandbox. Bounded: the oldest note
 * is forgotten first. */
#pragma once

#include <stddef.h>

struct notes;

/* Of at most MOST ids, SIZE bytes each. */
struct notes *notes_new(size_t most, size_t size);
struct notes *notes_free(struct notes *all);

/* Copies the SIZE bytes at NOTE, in place of what was known of ID. */
void notes_put(struct notes *all, const char *id, const void *note);

/* NULL: there is none. Good until the next call. */
const void *notes_of(const struct notes *all, const char *id);
void notes_forget(struct notes *all, const char *id);
