/* lost.h - inside the room: why sandboxes ended by themselves, as the keeper told it. Bounded: the oldest is
 * forgotten first. */
#pragma once

#include <stddef.h>

struct lost;

struct lost *lost_new(size_t most);
struct lost *lost_free(struct lost *all);

void lost_add(struct lost *all, const char *id, const char *why);
void lost_forget(struct lost *all, const char *id);

/* NULL: it was not lost. Good until the next call. */
const char *lost_why(const struct lost *all, const char *id);
