#include "keeper/line.h"

#include "keeper/parts.h"
#include "keeper/sandbox.h"

/* Whom somebody waits for stands before those that are made ahead. */
static struct sandbox **place_in_line(struct keeper *k, const char *id)
{
	struct sandbox **at = &k->waiting;

	if (!id[0]) return k->waiting_last;
	while (*at && (*at)->record.id[0])
		at = &(*at)->next_waiting;
	return at;
}

void line_join(struct sandbox *s)
{
	struct keeper *k = s->keeper;
	struct sandbox **at = place_in_line(k, s->record.id);

	s->next_waiting = *at;
	*at = s;
	if (!s->next_waiting) k->waiting_last = &s->next_waiting;
}

void line_leave(struct sandbox *s)
{
	struct keeper *k = s->keeper;
	struct sandbox **at = &k->waiting;

	while (*at != s)
		at = &(*at)->next_waiting;
	*at = s->next_waiting;
	if (!*at) k->waiting_last = at;
	s->next_waiting = NULL;
	sandbox_clear_timer(s);
}
