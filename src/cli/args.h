/*
 * args.h - the command line of one command, from a table: parsed and explained by the same rows.
 *
 * Every option's value goes to a field of the command's own struct. A mistake is answered here, with a
 * sentence and exit status 2; so is --help.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_SERVER = 1, EXIT_USAGE = 2 }; /* the server or the way to it failed; the caller's mistake */

enum args_kind {
	ARGS_SWITCH,   /* bool */
	ARGS_TEXT,     /* const char * */
	ARGS_TEXTS,    /* struct args_texts: the option may be repeated */
	ARGS_DURATION, /* uint64_t milliseconds, from "500ms", "30s", "5m", "2h"; a bare number means seconds
			*/
};

struct args_texts {
	const char **items;
	size_t count;
};

struct args_option {
	const char *name;  /* without the dashes */
	char letter;       /* of the short form, or 0 */
	const char *value; /* "DIR"; NULL for a switch */
	const char *help;
	enum args_kind kind;
	size_t offset; /* of the field in the command's struct */
};

struct args_syntax {
	const char *command, *operands, *summary;
	const struct args_option *options;
	size_t option_count;
	int least, most;           /* operands; MOST < 0: any number */
	bool operands_end_options; /* what follows the first operand belongs to somebody else's command line
				    */
	const char *more;          /* further paragraphs for --help, or NULL */
};

/* Fills the struct at TARGET. Returns the index of the first operand in ARGV, which is sorted: options come
 * first. */
int args_parse(const struct args_syntax *syntax, int argc, char **argv, void *target);

void args_help(const struct args_syntax *syntax);

/* False for what is no duration, or too long for a number of milliseconds. */
bool args_duration(const char *text, uint64_t *ret_ms);
