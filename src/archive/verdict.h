/* verdict.h - what a run has to say in the end: its first failure, else its first warning. */
#pragma once

#include "base/err.h"

struct verdict {
	unsigned failures;
	unsigned warnings;
	struct err failure; /* the first of them */
	struct err warning;
};

/* All take a code and a text, and return the code of the first of their kind. */
#define verdict_fail(v, ...) ((v)->failures++ ? (v)->failure.code : err_set(&(v)->failure, __VA_ARGS__))
#define verdict_warn(v, ...) ((v)->warnings++ ? (v)->warning.code : err_set(&(v)->warning, __VA_ARGS__))

/* The same, where the text explains itself without the name of an errno. */
#define verdict_refuse(v, ...) ((v)->failures++ ? (v)->failure.code : err_say(&(v)->failure, __VA_ARGS__))
#define verdict_remark(v, ...) ((v)->warnings++ ? (v)->warning.code : err_say(&(v)->warning, __VA_ARGS__))

/* How much of a path a message shows: enough to find it, and room for the reason behind it. */
#define PATH_SHOWN "%.150s"
