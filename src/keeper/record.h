/*
 * record.h - what a restarted keeper must know of a sandbox: one small text file, sandboxes/RUN/record.
 *
 * Lines "name value", in a fixed order, after a first line with the version. The reader believes nothing: a
 * record that is not exactly as the writer makes them is no record, and its sandbox is swept away.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"
#include "isolation/limits.h"

struct err;

#define RECORD_COOKIE 32   /* bytes that prove a keeper to the agent */
#define RECORD_MAX    1024 /* bytes of the file */
#define INSTANCE_MAX  32   /* characters of an instance type's name */

struct record {
	char id[SANDBOX_ID_MAX + 1]; /* "": it was made ahead, and is nobody's yet */
	char run[UUID_LEN + 1];      /* names this life of the id, and the sandbox on this host */
	char instance[INSTANCE_MAX + 1];
	uint32_t base_id;
	pid_t pid;               /* the agent, and */
	uint64_t pid_start;      /* the clock tick of its start, */
	char boot[UUID_LEN + 1]; /* in this boot: together they name a process for good */
	uint8_t cookie[RECORD_COOKIE];
	uint64_t created_ms; /* wall clock */
	struct limits own;   /* in place of the instance type's; 0: as that says */
	bool asleep;         /* there is no agent, and none is missing: only the tree */
};

/* The file's text. Its length. */
size_t record_format(const struct record *rec, char text[RECORD_MAX]);

/* Pure. 0, or -EINVAL with what is wrong in E. */
int record_parse(const char *text, size_t len, struct record *ret, struct err *e);

/*
 * Puts DIR_FD/record in place whole: temporary, then rename. It is there for a keeper that starts after this
 * one was killed. Only record_sync() makes it survive a crash of the host, too: that may take milliseconds
 * and can follow later, because no sandbox outlives its host.
 */
int record_write(int dir_fd, const struct record *rec, struct err *e);
int record_sync(int dir_fd);

int record_read(int dir_fd, struct record *ret, struct err *e);

/* This boot's name. */
int record_boot(char boot[UUID_LEN + 1]);
