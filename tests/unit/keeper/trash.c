#include "keeper/trash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "unit.h"

#define PATIENCE_MS 30000

static char dir[64];
static int dir_fd, trash_fd;

static void begin(void)
{
	(void)snprintf(dir, sizeof dir, "/tmp/tombolo-unit-trash-XXXXXX");
	ASSERT_TRUE(mkdtemp(dir) != NULL);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_OK(mkdirat(dir_fd, "trash", 0700));
	trash_fd = openat(dir_fd, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Succeeds only if the trash is empty. */
static void end(void)
{
	ASSERT_OK(unlinkat(dir_fd, "trash", AT_REMOVEDIR));
	fd_close(trash_fd);
	fd_close(dir_fd);
	ASSERT_OK(rmdir(dir));
}

TEST(a_tree_deeper_than_any_stack_goes)
{
	struct trash *t;
	int fd;

	begin();
	ASSERT_OK(mkdirat(dir_fd, "tree", 0755));
	fd = openat(dir_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int depth = 0; depth < 3000; depth++) {
		int next;

		ASSERT_OK(mkdirat(fd, "d", 0));
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(fd);
		fd = next;
		ASSERT_TRUE(fd >= 0);
	}
	fd_close(fd);
	ASSERT_OK(trash_new(trash_fd, &t, NULL));
	ASSERT_OK(trash_put(t, dir_fd, "tree"));
	trash_free(t, PATIENCE_MS);
	end();
}

TEST(links_are_deleted_and_what_they_name_stays)
{
	struct trash *t;

	begin();
	ASSERT_OK(mkdirat(dir_fd, "stays", 0755));
	ASSERT_OK(mkdirat(dir_fd, "stays/inside", 0755));
	ASSERT_OK(mkdirat(dir_fd, "tree", 0755));
	ASSERT_OK(symlinkat("../stays", dir_fd, "tree/link"));
	ASSERT_OK(symlinkat(dir, dir_fd, "tree/absolute"));
	ASSERT_OK(trash_new(trash_fd, &t, NULL));
	ASSERT_OK(trash_put(t, dir_fd, "tree"));
	trash_free(t, PATIENCE_MS);
	ASSERT_OK(unlinkat(dir_fd, "stays/inside", AT_REMOVEDIR));
	ASSERT_OK(unlinkat(dir_fd, "stays", AT_REMOVEDIR));
	end();
}

TEST(what_an_earlier_keeper_left_is_deleted_and_names_never_clash)
{
	struct trash *t;

	begin();
	for (char name[] = "trash/0"; name[6] <= '9'; name[6]++)
		ASSERT_OK(mkdirat(dir_fd, name, 0755));
	ASSERT_OK(mkdirat(dir_fd, "tree", 0755));
	ASSERT_OK(trash_new(trash_fd, &t, NULL));
	ASSERT_OK(trash_put(t, dir_fd, "tree"));
	ASSERT_OK(trash_put(t, dir_fd, "never-was"));
	trash_free(t, PATIENCE_MS);
	end();
}

TESTS(RUN(a_tree_deeper_than_any_stack_goes), RUN(links_are_deleted_and_what_they_name_stays),
      RUN(what_an_earlier_keeper_left_is_deleted_and_names_never_clash))
