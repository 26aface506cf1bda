/* tree.h - whole directory trees on disk. */
#pragma once

/*
 * Removes the tree at PATH: everything below it on the same file system, links themselves and not what they
 * name. Nobody else may write in it meanwhile. 0, also when there is none, or -errno of the first refusal.
 */
int tree_delete(const char *path);
