/* legacy_path.h - inside the room: the path of POST /read and /write. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/path.h"

struct request;

#define LEGACY_PATH_MISSING "path must be a non-empty string"

/*
 * In the order of API.md 3.8: LEN bytes of TEXT are there, they mean a place inside /workspace (relative
 * ones: below it), the Session-Id header is fine. False: the request has been answered.
 */
bool legacy_path(struct request *rq, const char *text, size_t len, char path[PATH_LIMIT]);
