/* launch.h - from what the front asks for to a process: its environment, its command, its start. */
#pragma once

#include <stdbool.h>

struct err;
struct process;
struct process_spec;
struct wire_list;

/* A shell on a terminal, where no argv was given. */
#define LAUNCH_SHELL "/bin/bash"

/*
 * Starts ARGV with the sandbox's environment overlaid by ENV. DIRECT: argv is executed as it is. SPEC says
 * the rest; its command, env and argv are filled in here, and it is used up. limits_held() must be true.
 * -errno with a sentence for a person, in which paths are those of the sandbox.
 */
int launch(const struct wire_list *argv, const struct wire_list *env, bool direct, struct process_spec *spec,
	   struct process **ret, struct err *e);
