/* sandboxes.c - tombolo create, ls, rm, ps: the commands that make, list and end things. */
#include "cli/commands.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/client.h"

#define PATH_MAX_URL 1024 /* of the short paths made here: a prefix, an id, a word */

struct url_args {
	const char *url;
};

static const struct args_option url_options[] = {OPTION_URL(url_args)};

/* ---- create ---- */

struct create_args {
	const char *url, *instance;
};

static const struct args_option create_options[] = {
	{"instance", 't', "TYPE", "limits of cpu, memory and processes by name (lite, basic, ...)", ARGS_TEXT,
	 offsetof(struct create_args, instance)},
	OPTION_URL(create_args),
};

const struct args_syntax create_syntax = {
	.command = "create",
	.operands = "",
	.summary = "Makes a sandbox and prints its id.",
	.options = create_options,
	.option_count = ARRAY_LEN(create_options),
};

int create_main(int argc, char **argv)
{
	struct create_args args = {0};
	struct err e = ERR_NONE;
	auto_buf struct buf answer = {0};
	auto_free char *body = NULL;
	json_t *json, *id;
	struct client *c;
	int status = 0;

	args_parse(&create_syntax, argc, argv, &args);
	json = args.instance ? json_pack("{s:s}", "instance", args.instance) : json_object();
	body = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	if (!body) {
		fprintf(stderr, "tombolo: the instance type is not UTF-8\n");
		return EXIT_USAGE;
	}

	c = command_client(args.url);
	if (client_call(c, &(struct client_request){.method = "POST", .path = "/v1/sandbox", .json = body},
			&answer, &e) < 0) {
		status = command_failed(&e);
	} else {
		json = json_loadb(answer.data, answer.len, 0, NULL);
		id = json_object_get(json, "id");
		if (json_is_string(id)) {
			puts(json_string_value(id));
		} else {
			fprintf(stderr, "tombolo: the server's answer holds no id\n");
			status = EXIT_SERVER;
		}
		json_decref(json);
	}
	client_free(c);
	return status;
}

/* ---- rm ---- */

const struct args_syntax rm_syntax = {
	.command = "rm",
	.operands = "SANDBOX...",
	.summary = "Ends sandboxes with all that runs in them and all their files.",
	.options = url_options,
	.option_count = ARRAY_LEN(url_options),
	.least = 1,
	.most = -1,
};

int rm_main(int argc, char **argv)
{
	struct url_args args = {0};
	int first = args_parse(&rm_syntax, argc, argv, &args);
	struct client *c;
	int status = 0;

	for (int i = first; i < argc; i++)
		command_sandbox(argv[i]); /* all of them, before the first is gone */
	c = command_client(args.url);
	for (int i = first; i < argc; i++) {
		char path[PATH_MAX_URL];
		struct err e = ERR_NONE;

		snprintf(path, sizeof path, "/v1/sandbox/%s", argv[i]);
		if (client_call(c, &(struct client_request){.method = "DELETE", .path = path}, NULL, &e) < 0)
			status = command_failed(&e);
	}
	client_free(c);
	return status;
}

/* ---- lists ---- */

/* The array at PATH, or in its member NAME when the answer is an object. NULL after a complaint; *RET_STATUS
 * is then set. */
static json_t *fetch_list(const char *url, const char *path, const char *name, int *ret_status)
{
	struct err e = ERR_NONE;
	struct client *c = command_client(url);
	auto_buf struct buf answer = {0};
	json_t *json = NULL, *list;

	if (client_call(c, &(struct client_request){.method = "GET", .path = path}, &answer, &e) < 0) {
		*ret_status = command_failed(&e);
		client_free(c);
		return NULL;
	}
	client_free(c);
	json = json_loadb(answer.data ? answer.data : "", answer.len, 0, NULL);
	list = json_is_object(json) ? json_object_get(json, name) : json;
	if (!json_is_array(list)) {
		fprintf(stderr, "tombolo: the server's answer is no list\n");
		*ret_status = EXIT_SERVER;
		json_decref(json);
		return NULL;
	}
	json_incref(list);
	json_decref(json);
	return list;
}

/* Text from inside a sandbox, for a terminal: whatever could steer it becomes '?'. */
static void print_plain(const char *text)
{
	for (; *text != '\0'; text++)
		putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void print_cell(const json_t *object, const char *key, int width)
{
	const json_t *value = json_object_get(object, key);
	char number[24] = "-";
	const char *text = json_string_value(value);

	if (json_is_integer(value))
		snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	printf("%-*s  ", width, text ? text : number);
}

const struct args_syntax ls_syntax = {
	.command = "ls",
	.operands = "",
	.summary = "Lists the server's sandboxes.",
	.options = url_options,
	.option_count = ARRAY_LEN(url_options),
};

int ls_main(int argc, char **argv)
{
	struct url_args args = {0};
	int status = 0;
	size_t i;
	json_t *list, *sandbox;

	args_parse(&ls_syntax, argc, argv, &args);
	list = fetch_list(args.url, "/v1/sandbox", "sandboxes", &status);
	if (!list) return status;
	printf("%-24s  %-8s  %-12s  %s\n", "SANDBOX", "STATE", "INSTANCE", "CREATED");
	json_array_foreach(list, i, sandbox)
	{
		print_cell(sandbox, "id", 24);
		print_cell(sandbox, "state", 8);
		print_cell(sandbox, "instance", 12);
		print_cell(sandbox, "createdAt", 0);
		putchar('\n');
	}
	json_decref(list);
	return 0;
}

const struct args_syntax ps_syntax = {
	.command = "ps",
	.operands = "SANDBOX",
	.summary = "Lists the processes that commands started in a sandbox.",
	.options = url_options,
	.option_count = ARRAY_LEN(url_options),
	.least = 1,
	.most = 1,
};

int ps_main(int argc, char **argv)
{
	struct url_args args = {0};
	int first = args_parse(&ps_syntax, argc, argv, &args);
	char path[PATH_MAX_URL];
	int status = 0;
	size_t i, j;
	json_t *list, *process, *word;

	snprintf(path, sizeof path, "/v1/sandbox/%s/processes", command_sandbox(argv[first]));
	list = fetch_list(args.url, path, "processes", &status);
	if (!list) return status;
	printf("%-36s  %7s  %-8s  %-24s  %s\n", "PROCESS", "PID", "STATE", "STARTED", "COMMAND");
	json_array_foreach(list, i, process)
	{
		print_cell(process, "id", 36);
		printf("%7" JSON_INTEGER_FORMAT "  ", json_integer_value(json_object_get(process, "pid")));
		print_cell(process, "state", 8);
		print_cell(process, "startedAt", 24);
		json_array_foreach(json_object_get(process, "command"), j, word)
		{
			if (j > 0) putchar(' ');
			print_plain(json_is_string(word) ? json_string_value(word) : "?");
		}
		putchar('\n');
	}
	json_decref(list);
	return 0;
}
