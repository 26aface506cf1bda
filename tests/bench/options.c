#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define SECONDS       165
#define SECONDS_QUICK 40

int options_parse(int argc, char **argv, struct options *ret, struct err *e)
{
	static const struct option known[] = {
		{"url", required_argument, NULL, 'u'},     {"tombolo", required_argument, NULL, 't'},
		{"json", required_argument, NULL, 'j'},    {"only", required_argument, NULL, 'o'},
		{"seconds", required_argument, NULL, 's'}, {"quick", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},          {0},
	};
	struct options o = {.seconds = SECONDS};
	int c;

	while ((c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (c) {
		case 'u': o.url = optarg; break;
		case 't': o.tombolo = optarg; break;
		case 'j': o.json = optarg; break;
		case 'o': o.only = optarg; break;
		case 's': o.seconds = (unsigned)atoi(optarg); break;
		case 'q': o.quick = true, o.seconds = SECONDS_QUICK; break;
		case 'h': o.help = true; break;
		default: return err_say(e, -EINVAL, "see --help");
		}
	}
	if (optind < argc) return err_say(e, -EINVAL, "'%s' is not an option; see --help", argv[optind]);
	*ret = o;
	return 0;
}

void options_print_help(void)
{
	puts("tombolo-bench: measures a sandbox server together with the floors of this host, and prints "
	     "both.\n"
	     "\n"
	     "  --quick          less than a minute instead of three\n"
	     "  --seconds N      time for the rounds\n"
	     "  --only A,B       some measurements only:");
	fputs("                  ", stdout);
#define MEASUREMENT(name, every) fputs(" " #name, stdout);
#include "measurements.def"
	puts("\n"
	     "  --json FILE      the numbers, for a program\n"
	     "  --url URL        measure this server instead of starting one; SANDBOX_API_KEY is its key\n"
	     "  --tombolo FILE   the program to start as server\n"
	     "\n"
	     "The exit status says whether everything ran, never how fast.");
}

bool options_wants(const struct options *o, const char *measurement)
{
	size_t len = strlen(measurement);

	for (const char *at = o->only; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, measurement, len) == 0 && (at[len] == ',' || at[len] == '\0')) return true;
	return !o->only;
}
