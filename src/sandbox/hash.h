/* hash.h - inside the room: uthash, with a hash function that every compiler takes without a warning. */
#pragma once

#define HASH_FUNCTION HASH_FNV
#include <uthash.h>
