/*
 * image_host.h - the `host` image: a generated skeleton as root, and the host's own /usr, read-only.
 *
 * Nothing of the host is visible inside but /usr and the harmless files of image_host.def (linker cache, certificates,
 * alternatives, zone, terminfo ...). passwd, group, hosts and the like are written new.
 */
#pragma once

struct err;
struct image;

/*
 * Builds the skeleton below DIR (made if missing; replaced atomically when its content changed) and opens both.
 * The skeleton is owned by uid 0, /workspace and /home/sandbox by 1000, and is never written afterwards.
 */
int image_host_open(const char *dir, struct image *ret, struct err *e);

/* Programs a client counts on (CLIENTS.md section 6, mandatory) that the host lacks: NULL if none, else one sentence. */
const char *image_host_missing(void);
