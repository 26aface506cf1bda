/*
 * bond.h - a sandbox and its agent: holding it, what it says, its death, and the links to it.
 *
 * Trust: an agent lives with strangers. What it says is parsed with a length, and a protocol error costs only
 * its own sandbox.
 */
#pragma once

#include "wire/message.h"

struct record;
struct sandbox;

/* Takes its agent's descriptors, and watches them: for its death, and for what it says. */
void bond_hold_agent(struct sandbox *s, int pidfd);
void bond_hold(struct sandbox *s, int fd);

/* It is contained and has its id: LIVE, and the front gets its link. */
void bond_hand_over(struct sandbox *s);

/* Says hello with the cookie as ROLE on a connected socket. */
int bond_greet(const struct record *rec, int fd, enum wire_role role);

/* A new connection to its agent for a new front; it has said hello with the cookie. A descriptor or -errno.
 */
int bond_connect_front(const struct sandbox *s);

/* A living one that comes too late for the start of a front, or whose link was lost, gets one. -errno: it
 * takes none. */
int bond_attach_front(struct sandbox *s);
