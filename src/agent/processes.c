#include "agent/processes.h"

#include <string.h>

#include "agent/processes_private.h"

static struct process *first, **last = &first;
static bool forgetting_due;

struct process *processes_all(void)
{
	return first;
}

void processes_add(struct process *p)
{
	*last = p;
	last = &p->next;
}

void processes_remove(struct process *p)
{
	struct process **at = &first;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	if (!p->next) last = at;
}

void processes_forgetting_due(void)
{
	forgetting_due = true;
}

bool processes_take_forgetting_due(void)
{
	bool due = forgetting_due;

	forgetting_due = false;
	return due;
}

/* ---- what is known of one ---- */

const struct process_facts *process_facts(const struct process *p)
{
	return &p->facts;
}

unsigned process_live(const struct process *p)
{
	return tree_count(&p->tree);
}

const struct log *process_log(const struct process *p)
{
	return &p->log;
}

bool process_is_watched(const struct process *p)
{
	return p->client != NULL;
}

/* ---- who reads the log ---- */

void process_follow(struct process *p, struct process_follower *f)
{
	f->next = p->followers;
	p->followers = f;
}

void process_unfollow(struct process *p, struct process_follower *f)
{
	struct process_follower **at = &p->followers;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	if (p->facts.ended) processes_forgetting_due();
}

void process_tell_followers(struct process *p)
{
	for (struct process_follower *f = p->followers, *next; f; f = next) {
		next = f->next;
		f->on_news(f);
	}
}

/* ---- finding ---- */

/* P or the first one after it that may be found. */
static struct process *found(struct process *p)
{
	while (p && p->retired && p->facts.ended)
		p = p->next;
	return p;
}

struct process *process_first(void)
{
	return found(first);
}

struct process *process_next(struct process *p)
{
	return found(p->next);
}

struct process *process_find(enum process_kind kind, const char *name)
{
	struct process *newest = NULL;

	for (struct process *p = process_first(); p; p = process_next(p)) {
		if (p->facts.kind == kind && strcmp(p->facts.id, name) == 0) newest = p;
	}
	return newest;
}

void process_retire(struct process *p)
{
	p->retired = true;
	forgetting_due = true;
}
