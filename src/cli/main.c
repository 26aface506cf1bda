/* main.c - tombolo: finds the command and hands over to it. */
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "cli/serve.h"

static int help_main(int argc, char **argv);

static int version_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("tombolo " TOMBOLO_VERSION);
	return 0;
}

static const struct command {
	const char *name, *summary;
	int (*main)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
	const struct args_syntax *syntax;   /* NULL: it explains itself */
} commands[] = {
	{"serve", "Runs the server in the foreground.", serve_main, NULL},
	{"create", NULL, create_main, &create_syntax},
	{"exec", NULL, exec_main, &exec_syntax},
	{"cp", NULL, cp_main, &cp_syntax},
	{"ls", NULL, ls_main, &ls_syntax},
	{"ps", NULL, ps_main, &ps_syntax},
	{"rm", NULL, rm_main, &rm_syntax},
	{"help", "Tells about a command.", help_main, NULL},
	{"version", "Prints the version.", version_main, NULL},
};

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].name, name) == 0) return &commands[i];
	return NULL;
}

static void overview(FILE *to)
{
	fputs("usage: tombolo COMMAND [...]\n\nSandboxes for programs that run code they do not trust.\n\n",
	      to);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(to, "  %-8s  %s\n", commands[i].name,
			commands[i].syntax ? commands[i].syntax->summary : commands[i].summary);
	fputs("\n'tombolo help COMMAND' tells more. The client commands find their server by --url or "
	      "TOMBOLO_URL, and\n"
	      "its key in TOMBOLO_API_KEY.\n",
	      to);
}

static int unknown(const char *name)
{
	fprintf(stderr, "tombolo: there is no command '%s'; 'tombolo help' lists them\n", name);
	return EXIT_USAGE;
}

static int help_main(int argc, char **argv)
{
	const struct command *command;
	char help[] = "--help";

	if (argc < 2) {
		overview(stdout);
		return 0;
	}
	command = find(argv[1]);
	if (!command) return unknown(argv[1]);
	if (command->syntax) args_help(command->syntax);
	else if (command->main == serve_main) return serve_main(2, (char *[]){argv[1], help, NULL});
	else printf("usage: tombolo %s\n\n%s\n", command->name, command->summary);
	return 0;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		overview(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return help_main(1, argv + 1);
	if (strcmp(argv[1], "--version") == 0) return version_main(1, argv + 1);
	command = find(argv[1]);
	return command ? command->main(argc - 1, argv + 1) : unknown(argv[1]);
}
