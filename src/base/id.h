/* id.h - names of things: made from the kernel's random bytes, judged before they are used. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SANDBOX_ID_MAX  128 /* characters; contract: ^[a-z2-7]{1,128}$ */
#define SANDBOX_ID_MADE 24  /* of those we hand out: 15 random bytes in base32 (RFC 4648, lower case) */
#define NAME_ID_MAX     128 /* sessions and terminals: ^[a-zA-Z0-9._-]{1,128}$ and no ".." */
#define UUID_LEN        36

bool id_is_sandbox(const char *text, size_t len);
bool id_is_name(const char *text, size_t len);

void id_make_sandbox(char id[SANDBOX_ID_MADE + 1]);
void id_make_uuid(char id[UUID_LEN + 1]); /* version 4 */

/* LEN bytes of the kernel's generator. Aborts if there is none: nothing we do would be safe then. */
void id_random(void *bytes, size_t len);
