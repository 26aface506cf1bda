#include "keeper/parts.h"

#include "loop/loop.h"

static void on_turn(void *ctx)
{
	struct keeper *k = ctx;

	k->change_told = false;
	k->on_changed(k);
}

void keeper_changed(struct keeper *k)
{
	if (k->change_told) return;
	k->change_told = true;
	loop_defer(k->loop, on_turn, k);
}
