/*
 * config.h - the settings of a server, from one table (options.def): defaults, then the config file, then the
 * environment, then flags; the later wins.
 *
 * `tombolo serve` resolves them once and hands the result to its keeper and front in a sealed memory file, so
 * that no setting, and above all no key, is in anybody's arguments or environment. Only main files include
 * this.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;

typedef char *config_type_TEXT;
typedef char *config_type_SECRET;
typedef bool config_type_BOOL;
typedef uint32_t config_type_COUNT;
typedef uint64_t config_type_BYTES;
typedef uint64_t config_type_MILLIS;
typedef uint64_t config_type_SECONDS; /* milliseconds, too */
typedef char *config_type_ADDRESSES;  /* the text; see address.h */

struct config {
#define OPTION(name, type, standard, contract, allowed, help) config_type_##type name;
#include "config/options.def"
};

/* The defaults. Texts are the struct's. */
void config_init(struct config *c);
void config_done(struct config *c);

/*
 * Defaults, the file named by --config or TOMBOLO_CONFIG, ENVIRON, and the flags ARGV[1..]. Reads the key
 * file. 0; -EINVAL with a sentence that names the place and what is allowed there: print it and exit with 2.
 * *C must be initialised; after a failure it is half set and still to be done.
 */
int config_load(struct config *c, int argc, char *const argv[], char *const environ_[], struct err *e);

/* What must hold between settings: no address that others can reach without a key. */
int config_check(const struct config *c, struct err *e);

/* A sealed memory file for another program's config_read_fd(); the caller closes it. */
int config_write(const struct config *c, int *ret_fd, struct err *e);
int config_read_fd(int fd, struct config *c, struct err *e);

/* The table for a person, one option a paragraph. */
void config_help(FILE *out);
