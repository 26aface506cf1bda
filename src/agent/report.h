/* report.h - what is told about processes: their list, and how one ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

struct channel;
struct frame;
struct peer;
struct process;

/* As channel_opener, of open_list. */
int list_open(struct peer *p, const struct frame *f);

/* A credit larger than any client's makes sense of: the peer is confused. */
#define CREDIT_MAX ((uint64_t)1 << 40)

/* The `end` of a process that ended. */
struct msg_end report_end(const struct process *p);

/* The `end` of a channel that only started P. */
struct msg_end report_started(const struct process *p);

/* `opened`, in no hurry: an `end` may follow soon. */
void report_opened(struct channel *c, const struct process *p);
