/* commands.c - what the client commands share. */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "cli/client.h"

int command_failed(const struct err *e)
{
	fprintf(stderr, "tombolo: %s\n", e->text);
	return e->code == -EINVAL ? EXIT_USAGE : EXIT_SERVER;
}

struct client *command_client(const char *url)
{
	struct err e = ERR_NONE;
	struct client *c = NULL;

	if (client_new(url, &c, &e) < 0) exit(command_failed(&e));
	return c;
}

const char *command_sandbox(const char *text)
{
	if (!id_is_sandbox(text, strlen(text))) {
		fprintf(stderr,
			"tombolo: '%s' is no sandbox id: those are 1 to 128 characters of a-z and 2-7\n",
			text);
		exit(EXIT_USAGE);
	}
	return text;
}
