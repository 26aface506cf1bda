/*
 * line.h - the line: sandboxes that are WAITING for an agent and a slot. keeper.c serves it from its head
 * (`waiting` in parts.h).
 */
#pragma once

struct sandbox;

/* Its place: whom somebody waits for stands before those that are made ahead. */
void line_join(struct sandbox *s);

/* S is in line, wherever. Its timer, which was for the wait, is cleared. */
void line_leave(struct sandbox *s);
