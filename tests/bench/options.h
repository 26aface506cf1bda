/* options.h - the command line of tombolo-bench. */
#pragma once

#include <stdbool.h>

struct err;

struct options {
	const char *url;     /* of a server that runs already; NULL: start one */
	const char *tombolo; /* the program to start; NULL: the one of our build directory */
	const char *json;    /* file to write, or NULL */
	const char *only;    /* names of measurements with commas between, or NULL for all */
	unsigned seconds;    /* rounds begin until this much time is over */
	bool quick;
	bool help;
};

int options_parse(int argc, char **argv, struct options *ret, struct err *e);
void options_print_help(void);
bool options_wants(const struct options *o, const char *measurement);
