#include "cli/args.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

bool args_duration(const char *text, uint64_t *ret_ms)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	char *unit;
	unsigned long long n;

	if (text[0] < '0' || text[0] > '9') return false;
	errno = 0;
	n = strtoull(text, &unit, 10);
	if (errno != 0) return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(unit, units[i].name) == 0) return !__builtin_mul_overflow(n, units[i].ms, ret_ms);
	return false;
}

void args_help(const struct args_syntax *syntax)
{
	printf("usage: tombolo %s%s%s%s\n\n%s\n", syntax->command,
	       syntax->option_count > 0 ? " [options]" : "", syntax->operands[0] != '\0' ? " " : "",
	       syntax->operands, syntax->summary);
	if (syntax->option_count > 0) puts("\noptions:");
	for (size_t i = 0; i < syntax->option_count; i++) {
		const struct args_option *o = &syntax->options[i];
		char left[64];

		snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
			 o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name, o->value ? " " : "",
			 o->value ? o->value : "");
		printf("  %-22s %s\n", left, o->help);
	}
	if (syntax->more) printf("\n%s\n", syntax->more);
}

static _Noreturn void refuse(const struct args_syntax *syntax, const char *why, const char *what)
{
	fprintf(stderr, "tombolo %s: %s %s\n", syntax->command, why, what);
	fprintf(stderr, "'tombolo help %s' shows how it is used\n", syntax->command);
	exit(EXIT_USAGE);
}

static void take_value(const struct args_syntax *syntax, const struct args_option *o, const char *value,
		       void *target)
{
	void *field = (char *)target + o->offset;
	struct args_texts *texts;

	switch (o->kind) {
	case ARGS_SWITCH: *(bool *)field = true; break;
	case ARGS_TEXT: *(const char **)field = value; break;
	case ARGS_TEXTS:
		texts = field;
		texts->items = mem_grow(texts->items, texts->count + 1, sizeof *texts->items);
		texts->items[texts->count++] = value;
		break;
	case ARGS_DURATION:
		if (!args_duration(value, field))
			refuse(syntax, "wants a duration like 500ms, 30s or 5m, not", value);
		break;
	}
}

/* getopt's two tables, from ours. LETTERS has room for three characters an option. */
static struct option *getopt_tables(const struct args_syntax *syntax, char *letters)
{
	struct option *names = mem_new_array(syntax->option_count + 2, sizeof *names);

	*letters++ = syntax->operands_end_options ? '+' : ':';
	if (syntax->operands_end_options) *letters++ = ':';
	for (size_t i = 0; i < syntax->option_count; i++) {
		const struct args_option *o = &syntax->options[i];
		int has_value = o->value ? required_argument : no_argument;

		names[i] = (struct option){.name = o->name, .has_arg = has_value, .val = 256 + (int)i};
		if (o->letter) *letters++ = o->letter;
		if (o->letter && o->value) *letters++ = ':';
	}
	names[syntax->option_count] = (struct option){.name = "help", .val = 'h'};
	*letters++ = 'h';
	*letters = '\0';
	return names;
}

static const struct args_option *option_of(const struct args_syntax *syntax, int found)
{
	if (found >= 256) return &syntax->options[found - 256];
	for (size_t i = 0; i < syntax->option_count; i++)
		if (syntax->options[i].letter == found) return &syntax->options[i];
	return NULL;
}

int args_parse(const struct args_syntax *syntax, int argc, char **argv, void *target)
{
	char letters[256];
	auto_free struct option *names = getopt_tables(syntax, letters);
	int found, operands;

	opterr = 0;
	optind = 0;
	while ((found = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		const struct args_option *o = option_of(syntax, found);

		if (o) {
			take_value(syntax, o, optarg, target);
		} else if (found == 'h') {
			args_help(syntax);
			exit(0);
		} else {
			refuse(syntax,
			       found == ':' ? "this option needs a value:" : "there is no such option:",
			       argv[optind - 1]);
		}
	}
	operands = argc - optind;
	if (operands < syntax->least || (syntax->most >= 0 && operands > syntax->most))
		refuse(syntax, "wants", syntax->operands[0] != '\0' ? syntax->operands : "no operands");
	return optind;
}
