#include "keeper/population.h"

#include <string.h>

#include "keeper/parts.h"
#include "keeper/sandbox.h"

/* FNV-1a. */
static struct sandbox **bucket_of(const struct keeper *k, const char *id)
{
	uint32_t hash = 2166136261u;

	for (const char *p = id; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 16777619u;
	return (struct sandbox **)&k->buckets[hash % KEEPER_BUCKETS];
}

static struct sandbox *same_id(struct sandbox *s, const char *id)
{
	while (s && strcmp(s->record.id, id) != 0)
		s = s->next;
	return s;
}

struct sandbox *population_find(const struct keeper *k, const char *id)
{
	return same_id(*bucket_of(k, id), id);
}

struct sandbox *population_find_next(const struct sandbox *s)
{
	return same_id(s->next, s->record.id);
}

void population_add(struct keeper *k, struct sandbox *s)
{
	struct sandbox **at = bucket_of(k, s->record.id);

	s->next = *at;
	*at = s;
}

void population_drop(struct keeper *k, struct sandbox *s)
{
	struct sandbox **at = bucket_of(k, s->record.id);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
}

unsigned population_count(const struct keeper *k)
{
	unsigned count = 0;

	for (size_t i = 0; i < SANDBOX_STATES; i++)
		count += k->in_state[i];
	return count - k->in_state[SANDBOX_ASLEEP];
}

unsigned population_count_staying(const struct keeper *k)
{
	return population_count(k) - k->in_state[SANDBOX_DYING] - k->in_state[SANDBOX_CLEARING];
}

void population_each(struct keeper *k, void (*each)(struct sandbox *s, void *ctx), void *ctx)
{
	for (size_t i = 0; i < KEEPER_BUCKETS; i++) {
		for (struct sandbox *s = k->buckets[i], *next; s; s = next) {
			next = s->next;
			each(s, ctx);
		}
	}
}
