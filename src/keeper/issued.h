/*
 * issued.h - ids that were handed out and have no sandbox yet, with what was wished for them. The front
 * answers from its own copy; this one outlives it, and the keeper, too: STATE_DIR/issued.
 *
 * Theory of operation: the file is a journal of lines, "+ID INSTANCE MEMORY PIDS CPU DISK" and "-ID",
 * appended without fsync: it is there for whoever starts after us, and an id without a sandbox is worth no
 * wait for a disk. It is written anew (temporary, then rename) at a start and whenever it holds mostly lines
 * that no longer count. The reader believes nothing: what is no such line is skipped, so a line that was cut
 * is one id that is not known.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "keeper/record.h"

struct err;
struct issued;

#define ISSUED_MAX 16384 /* then the oldest is forgotten */

struct issued_wish {
	char id[SANDBOX_ID_MAX + 1];
	char instance[INSTANCE_MAX + 1];   /* "": the default */
	uint64_t memory_bytes, disk_bytes; /* 0: as the instance type says, here and below */
	uint32_t pids, cpu_milli;
};

/* Borrows DIR_FD, the state directory. */
int issued_open(int dir_fd, struct issued **ret, struct err *e);
struct issued *issued_free(struct issued *all);

void issued_add(struct issued *all, const struct issued_wish *wish);
void issued_forget(struct issued *all, const char *id);

/* In the order in which they were issued. */
void issued_each(const struct issued *all, void (*each)(const struct issued_wish *wish, void *ctx),
		 void *ctx);

/* One line of the file, without its end. Pure. '+' or '-' and what it says; 0: it is no such line. */
char issued_parse_line(const char *line, struct issued_wish *ret);
