/* guest.c - `guest WORD PATH SOCKET`: all facts. WORD must not be seen anywhere, PATH and SOCKET are the
 * host's. */
#include "guest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void fact(const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)printf("%s ", name);
	(void)vprintf(format, args);
	(void)printf("\n");
	va_end(args);
	(void)fflush(stdout); /* a probe may be the end of us */
}

void fact_call(const char *name, long result)
{
	fact(name, "%s", result >= 0 ? "OK" : strerrorname_np(errno));
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "euid") == 0) {
		fact("euid", "%d", (int)geteuid());
		return 0;
	}
	if (argc != 4) return 2;
	tell_identity();
	tell_processes();
	tell_proc(argv[1]);
	tell_files(argv[2]);
	tell_devices();
	tell_network(argv[3]);
	tell_mounting();
	tell_machinery();
	tell_sockets();
	tell_filter();
	fact("end", "reached");
	return 0;
}
