/*
 * processes.c - all processes of the sandbox: their list, oldest first, and how long the ended ones stay in
 * it.
 *
 * Nothing is forgotten but at the end of the reactor's turn, so whoever walks the list need not fear for it.
 */
#include <string.h>

#include "agent/process_private.h"

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

/* ---- forgetting ---- */

/* Ended, nobody holds its pipes, nobody of its tree lives, nobody reads its log: nothing would be missed. */
static bool is_forgettable(const struct process *p)
{
	return p->facts.ended && process_pipes_closed(p) && !p->tree.seq && !p->followers;
}

/*
 * Ended ones are kept by what they were, so that many short commands do not push out what somebody may ask
 * for. In the order in which their logs are dropped: the client of a command got its output anyway.
 */
enum keep { KEEP_NOT, KEEP_EXEC, KEEP_BACKGROUND, KEEP_TERMINAL, KEEPS };

static const unsigned kept[KEEPS] = {
	[KEEP_EXEC] = PROCESSES_KEPT, [KEEP_BACKGROUND] = BACKGROUND_KEPT, [KEEP_TERMINAL] = TERMINALS_KEPT};

static enum keep keep_of(const struct process *p)
{
	if (p->retired) return KEEP_NOT;
	if (p->facts.kind == KIND_TERMINAL) return KEEP_TERMINAL;
	return p->background ? KEEP_BACKGROUND : KEEP_EXEC;
}

static struct process *oldest_ended(enum keep keep)
{
	struct process *oldest = NULL;

	for (struct process *p = first; p; p = p->next) {
		if (!is_forgettable(p) || keep_of(p) != keep) continue;
		if (!oldest || p->facts.ended_ms < oldest->facts.ended_ms) oldest = p;
	}
	return oldest;
}

static struct process *oldest_log(void)
{
	struct process *oldest = NULL;

	for (struct process *p = first; p; p = p->next) {
		if (!is_forgettable(p) || !p->log.events) continue;
		if (!oldest || keep_of(p) < keep_of(oldest) ||
		    (keep_of(p) == keep_of(oldest) && p->facts.ended_ms < oldest->facts.ended_ms))
			oldest = p;
	}
	return oldest;
}

static void forget_processes(void)
{
	unsigned counts[KEEPS] = {0};

	for (struct process *p = first; p; p = p->next) {
		if (is_forgettable(p)) counts[keep_of(p)]++;
	}
	for (enum keep keep = 0; keep < KEEPS; keep++) {
		for (; counts[keep] > kept[keep]; counts[keep]--)
			process_forget(oldest_ended(keep));
	}
}

static void forget_logs(void)
{
	size_t weight = 0;

	for (struct process *p = first; p; p = p->next) {
		if (is_forgettable(p)) weight += log_weight(&p->log);
	}
	while (weight > LOGS_KEPT_BYTES) {
		struct process *p = oldest_log();

		weight -= log_weight(&p->log);
		log_drop(&p->log);
	}
}

void processes_turn(void)
{
	if (!forgetting_due) return;
	forgetting_due = false;
	forget_processes();
	forget_logs();
}
