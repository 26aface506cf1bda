/* standalone.c - a main() for a fuzz target without libFuzzer: feeds it every file of the directories it is
 * given. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int replay(const char *dir, const char *name)
{
	char path[4096];
	uint8_t *bytes;
	FILE *file;
	long len;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	file = fopen(path, "rb");
	if (!file || fseek(file, 0, SEEK_END) < 0 || (len = ftell(file)) < 0) {
		perror(path);
		return 1;
	}
	rewind(file);
	/* Exactly as large as the input, so that a sanitizer sees the first byte read past it. */
	bytes = malloc(len > 0 ? (size_t)len : 1);
	if (!bytes || fread(bytes, 1, (size_t)len, file) != (size_t)len) {
		perror(path);
		return 1;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, (size_t)len);
	free(bytes);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned replayed = 0;
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);

		if (!dir) {
			perror(argv[i]);
			return 1;
		}
		for (struct dirent *entry; (entry = readdir(dir));) {
			if (entry->d_name[0] == '.') continue;
			failed |= replay(argv[i], entry->d_name);
			replayed++;
		}
		closedir(dir);
	}
	printf("%u inputs\n", replayed);
	return failed || replayed == 0; /* an empty corpus tests nothing */
}
