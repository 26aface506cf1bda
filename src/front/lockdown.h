/* lockdown.h - what the network-facing program gives up before it listens to strangers. */
#pragma once

struct err;

/*
 * No core, no ptrace by others of our user, no new privileges, and only the system calls of an HTTP server.
 * Called when everything that has to be opened is open. 0 or a negative errno.
 */
int lockdown(struct err *e);
