#include "keeper/lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/mem.h"

struct lost_one {
	char id[SANDBOX_ID_MAX + 1]; /* "": forgotten */
	char why[160];
};

/* A ring: few enough to be walked. */
struct lost {
	struct lost_one ring[LOST_MAX];
	unsigned next;
};

struct lost *lost_new(void)
{
	return mem_new(sizeof(struct lost));
}

struct lost *lost_free(struct lost *l)
{
	free(l);
	return NULL;
}

void lost_forget(struct lost *l, const char *id)
{
	for (unsigned i = 0; i < LOST_MAX; i++)
		if (strcmp(l->ring[i].id, id) == 0) l->ring[i].id[0] = '\0';
}

void lost_add(struct lost *l, const char *id, const char *why)
{
	struct lost_one *one = &l->ring[l->next];

	lost_forget(l, id);
	(void)snprintf(one->id, sizeof one->id, "%s", id);
	(void)snprintf(one->why, sizeof one->why, "%s", why);
	l->next = (l->next + 1) % LOST_MAX;
}

void lost_each(const struct lost *l, void (*each)(const char *id, const char *why, void *ctx), void *ctx)
{
	for (unsigned i = 0; i < LOST_MAX; i++) {
		const struct lost_one *one = &l->ring[(l->next + i) % LOST_MAX];

		if (one->id[0]) each(one->id, one->why, ctx);
	}
}
