/*
 * admission.h - whether the host has room for one more sandbox: better a clear no than a host that tips over
 * with all that live on it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What must stay free; 0: not looked at. */
struct reserves {
	uint64_t memory_bytes; /* of MemAvailable */
	uint64_t disk_bytes;   /* of the state directory's file system */
	uint32_t processes;    /* of kernel.pid_max and kernel.threads-max, whichever is less */
};

/* What is free now; UINT64_MAX where it is not known. */
struct room {
	uint64_t memory_bytes, disk_bytes, inodes, processes, descriptors;
};

struct admission {
	struct reserves reserves;
	int dir_fd;       /* of the state directory */
	uint64_t seen_ms; /* when ROOM was looked at: it is good for a moment */
	struct room room;
};

/* Looks, unless it just has. False: TEXT says what there is too little of, and which setting says so. */
bool admission_allows(struct admission *a, uint64_t now_ms, char *text, size_t size);

/* Pure: the judgement alone. */
bool room_is_enough(const struct room *room, const struct reserves *reserves, char *text, size_t size);
