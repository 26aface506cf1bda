/* commands.h - the client commands. Each gets its own argv (argv[0] is the command's name) and returns an
 * exit status. */
#pragma once

#include "cli/args.h"

struct client;
struct err;

extern const struct args_syntax create_syntax, cp_syntax, exec_syntax, ls_syntax, ps_syntax, rm_syntax;

int create_main(int argc, char **argv);
int cp_main(int argc, char **argv);
int exec_main(int argc, char **argv);
int ls_main(int argc, char **argv);
int ps_main(int argc, char **argv);
int rm_main(int argc, char **argv);

/* The option that all of them share, for a struct with a field `url`. */
#define OPTION_URL(type) \
	{ \
		"url", 0, "URL", "the server (TOMBOLO_URL, else http://127.0.0.1:8787)", ARGS_TEXT, \
			offsetof(struct type, url) \
	}

/* Ends the program with a sentence when the URL makes no sense. */
struct client *command_client(const char *url);

/* Ends the program with a sentence when TEXT could be no sandbox id. */
const char *command_sandbox(const char *text);

/* Prints the reason; returns the exit status that goes with it. */
int command_failed(const struct err *e);
