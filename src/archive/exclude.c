#include "archive/exclude.h"

#include <fnmatch.h>
#include <string.h>

char *exclude_clean(char *entry)
{
	size_t len;

	for (;;) {
		if (*entry == '/') entry++;
		else if (entry[0] == '.' && entry[1] == '/') entry += 2;
		else break;
	}
	len = strlen(entry);
	while (len && entry[len - 1] == '/')
		entry[--len] = '\0';
	return len == 0 || strcmp(entry, ".") == 0 ? NULL : entry;
}

bool exclude_matches(char *const *entries, unsigned count, const char *path)
{
	for (unsigned i = 0; i < count; i++)
		if (fnmatch(entries[i], path, FNM_LEADING_DIR) == 0) return true;
	return false;
}
