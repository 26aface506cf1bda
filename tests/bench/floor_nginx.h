/* floor_nginx.h - an nginx of our own, one worker, that answers every request with the same few bytes. */
#pragma once

struct endpoint;
struct err;
struct nginx;

/* -ENOENT when there is no nginx. Its files are below DIR. Ready for requests on return. */
int nginx_start(const char *dir, struct nginx **ret, struct endpoint *ret_at, struct err *e);
struct nginx *nginx_stop(struct nginx *n);
