/*
 * keeping.c - nothing is forgotten but at the end of the reactor's turn, so whoever walks the list of
 * processes need not fear for it.
 */
#include "agent/keeping.h"

#include "agent/pipes.h"
#include "agent/process.h"
#include "agent/processes_private.h"

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

	for (struct process *p = processes_all(); p; p = p->next) {
		if (!is_forgettable(p) || keep_of(p) != keep) continue;
		if (!oldest || p->facts.ended_ms < oldest->facts.ended_ms) oldest = p;
	}
	return oldest;
}

static struct process *oldest_log(void)
{
	struct process *oldest = NULL;

	for (struct process *p = processes_all(); p; p = p->next) {
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

	for (struct process *p = processes_all(); p; p = p->next) {
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

	for (struct process *p = processes_all(); p; p = p->next) {
		if (is_forgettable(p)) weight += log_weight(&p->log);
	}
	while (weight > LOGS_KEPT_BYTES) {
		struct process *p = oldest_log();

		weight -= log_weight(&p->log);
		log_drop(&p->log);
	}
}

void keeping_turn(void)
{
	if (!processes_take_forgetting_due()) return;
	forget_processes();
	forget_logs();
}
