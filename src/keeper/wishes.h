/*
 * wishes.h - an id is to be there, to be gone, or to sleep: what the front asks for, judged, and fitted to
 * what there is of that id. Every answer goes through front.h.
 */
#pragma once

struct keeper;
struct msg_create;
struct wire_text;

/* The fields are judged here. */
void wishes_create(struct keeper *k, const struct msg_create *m);
void wishes_remove(struct keeper *k, const struct wire_text *id);
void wishes_sleep(struct keeper *k, const struct wire_text *id);
