#include "base/mem.h"

#include <errno.h>
#include <unistd.h>

static _Noreturn void fall(void)
{
	static const char why[] = ": out of memory\n";
	const char *name = program_invocation_short_name;

	(void)!write(STDERR_FILENO, name, strlen(name));
	(void)!write(STDERR_FILENO, why, sizeof why - 1);
	abort();
}

static void *must(void *p)
{
	if (!p) fall();
	return p;
}

void *mem_new(size_t size)
{
	return must(calloc(1, size ? size : 1));
}

void *mem_new_array(size_t count, size_t size)
{
	return must(calloc(count ? count : 1, size ? size : 1));
}

void *mem_grow(void *old, size_t count, size_t size)
{
	return must(reallocarray(old, count ? count : 1, size));
}

char *mem_strdup(const char *s)
{
	return must(strdup(s));
}

char *mem_strndup(const char *s, size_t len)
{
	return must(strndup(s, len));
}
