/*
 * image_host.h - the `host` image: a generated skeleton as root, and the host's own /usr, read-only.
 *
 * Nothing of the host is visible inside but /usr and the harmless files of image_host.def (linker cache,
 * certificates, alternatives, zone, terminfo ...). passwd, group, hosts and the like are written new.
 */
#pragma once

struct err;
struct image;

/*
 * Builds the skeleton below DIR (made if missing) and opens both. Each content has a directory of its own,
 * DIR/<digest>, that appears complete, by rename, and is never written afterwards: sandboxes that live keep
 * the one they were born with. When nothing changed on the host since, this only looks (a few milliseconds).
 * The skeleton is owned by uid 0, /workspace and /home/sandbox by 1000.
 */
int image_host_open(const char *dir, struct image *ret, struct err *e);

/* Removes all skeletons below DIR but IMAGE's. Only while no sandbox lives: theirs would lose files. */
int image_host_forget_others(const char *dir, const struct image *image, struct err *e);

/* Programs a client counts on that the host lacks: NULL if none, else one sentence. */
const char *image_host_missing(void);
