/*
 * tombolo-tar: packs and unpacks archives inside a sandbox, as its user.
 *
 *     tombolo-tar pack ROOT [EXCLUDE…]   the archive goes to descriptor 1
 *     tombolo-tar unpack ROOT            the archive comes from descriptor 0
 *
 * SIGTERM tells an unpacker that its input will break off: it leaves the old tree as it was.
 *
 * Started by descriptor, without an environment; statically linked, so that an image needs no tar and no
 * library. Exit code: 0 well; 1 well, with a warning; 2 failed; 3 called wrongly. The reason is one line on
 * descriptor 2.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "archive/input.h"
#include "archive/pack.h"
#include "archive/unpack.h"
#include "base/fd.h"

enum exit_code { EXIT_WELL, EXIT_WARNED, EXIT_FAILED, EXIT_USAGE };

/* A compressed archive may ask for a window of gigabytes. What real ones need is 128 MiB. */
#define MEMORY_MAX ((rlim_t)320 << 20)

static void print_line(const struct err *e, unsigned count)
{
	char line[sizeof e->text + 64];
	size_t len = (size_t)snprintf(line, sizeof line, "%s", e->text);

	if (count > 1) len += (size_t)snprintf(line + len, sizeof line - len, " (and %u more)", count - 1);

	/* Names are a stranger's: none may end the line or reach a terminal as a control sequence. */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) line[i] = '?';
	line[len] = '\n';
	(void)fd_write_all(STDERR_FILENO, line, len + 1);
}

static int report(const struct verdict *v)
{
	if (v->failures) print_line(&v->failure, v->failures);
	else if (v->warnings) print_line(&v->warning, v->warnings);
	else return EXIT_WELL;
	return v->failures ? EXIT_FAILED : EXIT_WARNED;
}

int main(int argc, char **argv)
{
	const struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
	struct verdict v = {0};

	/* A reader that is gone is an answer of write(). */
	(void)signal(SIGPIPE, SIG_IGN);
	/* A sanitizer maps terabytes for itself. */
	if (!SANITIZED) (void)setrlimit(RLIMIT_DATA, &memory);
	if (argc >= 3 && strcmp(argv[1], "pack") == 0) {
		pack(argv[2], argv + 3, (unsigned)argc - 3, STDOUT_FILENO, &v);
	} else if (argc == 3 && strcmp(argv[1], "unpack") == 0) {
		(void)signal(SIGTERM, input_break_off);
		unpack(argv[2], STDIN_FILENO, &v);
	} else {
		const struct err usage = {.text = "usage: tombolo-tar pack ROOT [EXCLUDE...] | unpack ROOT"};

		print_line(&usage, 1);
		return EXIT_USAGE;
	}
	return report(&v);
}
