/* privilege.h - is this host able to make sandboxes? Asked once at start, so that the answer is one clear
 * sentence. */
#pragma once

struct err;

/*
 * 0, or the first thing that is missing (root, a capability, a namespace, overlay, idmapped mounts) with what
 * to do. Makes one sandbox for real, on the file system of STATE_DIR, and lets it go: some milliseconds.
 * Leaves nothing.
 */
int privilege_check(const char *state_dir, struct err *e);
