/*
 * config.c - the table at work. Every source ends in set_value(), so a value is judged the same wherever it
 * is from.
 */
#include "config/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "config/address.h"
#include "config/file.h"
#include "config/value.h"

enum type { TEXT, SECRET, BOOL, COUNT, BYTES, MILLIS, SECONDS, ADDRESSES };

struct option {
	const char *name; /* with dashes */
	enum type type;
	const char *standard, *contract, *allowed, *help;
	size_t offset; /* of the field in struct config */
};

#define NAME_ROOM 64

static const struct option options[] = {
#define OPTION(name, type, standard, contract, allowed, help) \
	{#name, type, standard, contract, allowed, help, offsetof(struct config, name)},
#include "config/options.def"
};

#define FIELD(type, c, o)       ((config_type_##type *)((char *)(c) + (o)->offset))
#define CONST_FIELD(type, c, o) ((const config_type_##type *)((const char *)(c) + (o)->offset))

/* state_dir answers to "state-dir"; LEN bytes of NAME are looked at. */
static bool is_named(const struct option *o, const char *name, size_t len)
{
	if (strlen(o->name) != len) return false;
	for (size_t i = 0; i < len; i++) {
		if (name[i] != (o->name[i] == '_' ? '-' : o->name[i])) return false;
	}
	return true;
}

static const struct option *option_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (is_named(&options[i], name, len)) return &options[i];
	}
	return NULL;
}

/* The name as a flag ("state-dir") or in capitals as an environment variable ("STATE_DIR"). */
static const char *spell(const struct option *o, bool as_env, char out[NAME_ROOM])
{
	size_t i = 0;

	for (; i < NAME_ROOM - 1 && o->name[i]; i++) {
		if (as_env) out[i] = (char)toupper((unsigned char)o->name[i]);
		else out[i] = o->name[i] == '_' ? '-' : o->name[i];
	}
	out[i] = '\0';
	return out;
}

/* ---- one value ---- */

static void set_text(char **at, const char *value)
{
	free(*at);
	*at = mem_strdup(value);
}

static int refuse(const struct option *o, const char *value, const char *from, const char *wanted,
		  struct err *e)
{
	char name[NAME_ROOM];

	return err_say(e, -EINVAL, "%s: %s cannot be '%.60s': %s", from, spell(o, false, name),
		       o->type == SECRET ? "..." : value, wanted);
}

static int set_addresses(struct config *c, const struct option *o, const char *value, const char *from,
			 struct err *e)
{
	struct address list[ADDRESSES_MAX];
	int r = addresses_parse(value, list, e);

	if (r < 0) {
		err_add(e, "%s", from);
		return r;
	}
	set_text(FIELD(ADDRESSES, c, o), value);
	return 0;
}

static int set_value(struct config *c, const struct option *o, const char *value, const char *from,
		     struct err *e)
{
	char wanted[128];
	uint64_t n;

	switch (o->type) {
	case TEXT:
	case SECRET:
		(void)snprintf(wanted, sizeof wanted, "it is one of %s", o->allowed);
		if (o->allowed[0] && !value_is_word_of(value, o->allowed))
			return refuse(o, value, from, wanted, e);
		set_text(FIELD(TEXT, c, o), value);
		return 0;
	case BOOL:
		if (!value_bool(value, FIELD(BOOL, c, o)))
			return refuse(o, value, from, "it is yes or no", e);
		return 0;
	case COUNT:
		(void)snprintf(wanted, sizeof wanted, "it is a number within %s", o->allowed);
		if (!value_count(value, &n) || !value_is_within(n, o->allowed))
			return refuse(o, value, from, wanted, e);
		*FIELD(COUNT, c, o) = (uint32_t)n;
		return 0;
	case BYTES:
		if (value_bytes(value, FIELD(BYTES, c, o))) return 0;
		return refuse(o, value, from, "it is a size such as 33554432 or 32MiB", e);
	case MILLIS:
		if (value_millis(value, FIELD(MILLIS, c, o))) return 0;
		return refuse(o, value, from, "it is a time such as 15000 (ms) or 15s", e);
	case SECONDS:
		if (value_seconds(value, FIELD(SECONDS, c, o))) return 0;
		return refuse(o, value, from, "it is a time such as 600 (seconds) or 10m", e);
	case ADDRESSES: return set_addresses(c, o, value, from, e);
	}
	return -EINVAL;
}

/* CTX is the struct config. FROM ("conf:3", "settings") begins the sentence of a refusal. */
static int set_named(void *ctx, const char *name, const char *value, const char *from, struct err *e)
{
	const struct option *o = option_find(name, strlen(name));

	if (!o)
		return err_say(e, -EINVAL, "%s: there is no option '%.60s' (see: tombolo serve --help)", from,
			       name);
	return set_value(ctx, o, value, from, e);
}

void config_init(struct config *c)
{
	memset(c, 0, sizeof *c);
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		int r = set_value(c, &options[i], options[i].standard, "default", NULL);

		assert(r == 0);
		(void)r;
	}
}

void config_done(struct config *c)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		enum type type = options[i].type;

		if (type == TEXT || type == SECRET || type == ADDRESSES) free(*FIELD(TEXT, c, &options[i]));
	}
	memset(c, 0, sizeof *c);
}

/* ---- sources ---- */

static int load_file(struct config *c, struct err *e)
{
	if (!c->config[0]) return 0;
	return config_file_read(c->config, set_named, c, e);
}

static const char *find_env(char *const environ_[], const char *prefix, const char *name)
{
	size_t prefix_len = strlen(prefix), len = strlen(name);

	for (; *environ_; environ_++) {
		const char *at = *environ_;

		if (strncmp(at, prefix, prefix_len) != 0 || strncmp(at + prefix_len, name, len) != 0)
			continue;
		if (at[prefix_len + len] == '=') return at + prefix_len + len + 1;
	}
	return NULL;
}

/* The contract's own variables: a number is brought into its range, what is none leaves the default. */
static void load_contract_number(struct config *c, const struct option *o, const char *value)
{
	uint64_t n, least, most;

	if (o->type == MILLIS) {
		(void)value_millis(value, FIELD(MILLIS, c, o));
		return;
	}
	if (!value_count(value, &n)) return;
	value_range(o->allowed, &least, &most);
	*FIELD(COUNT, c, o) = (uint32_t)(n < least ? least : n > most ? most : n);
}

/* Our own name wins over the contract's. Set but empty counts as not set, as in the contract. */
static int load_env_option(struct config *c, const struct option *o, char *const environ_[], struct err *e)
{
	char name[NAME_ROOM], from[NAME_ROOM + 16];
	const char *value = find_env(environ_, "TOMBOLO_", spell(o, true, name));

	if (value && value[0]) {
		(void)snprintf(from, sizeof from, "TOMBOLO_%s", name);
		return set_value(c, o, value, from, e);
	}
	if (!o->contract[0]) return 0;
	value = find_env(environ_, "", o->contract);
	if (!value || !value[0]) return 0;
	if (o->type == COUNT || o->type == MILLIS) {
		load_contract_number(c, o, value);
		return 0;
	}
	return set_value(c, o, value, o->contract, e);
}

static int load_env(struct config *c, char *const environ_[], struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(options) && r == 0; i++)
		r = load_env_option(c, &options[i], environ_, e);
	return r;
}

/* One flag at ARGV[*AT], which moves to its last word. With NAMED, only the option of that name is taken. */
static int load_flag(struct config *c, int argc, char *const argv[], int *at, const char *named,
		     struct err *e)
{
	const char *word = argv[*at], *value = NULL;
	const struct option *o;
	size_t len;

	if (strncmp(word, "--", 2) != 0)
		return err_say(e, -EINVAL,
			       "what is '%.60s'? Options begin with -- (see: tombolo serve --help)", word);
	len = strcspn(word + 2, "=");
	o = option_find(word + 2, len);
	if (!o) return err_say(e, -EINVAL, "there is no option '%.60s' (see: tombolo serve --help)", word);
	if (word[2 + len] == '=') value = word + 2 + len + 1;
	else if (o->type == BOOL) value = "yes";
	else if (*at + 1 < argc) value = argv[++*at];
	else return err_say(e, -EINVAL, "%s needs a value", word);
	if (named && strcmp(o->name, named) != 0) return 0;
	return set_value(c, o, value, o->type == SECRET ? "--api-key" : word, e);
}

static int load_flags(struct config *c, int argc, char *const argv[], const char *named, struct err *e)
{
	int r = 0;

	for (int at = 1; at < argc && r == 0; at++)
		r = load_flag(c, argc, argv, &at, named, e);
	return r;
}

/* The key is the file's first line. */
static int load_key_file(struct config *c, struct err *e)
{
	char text[4096];
	ssize_t n;

	if (!c->api_key_file[0]) return 0;
	n = fd_read_file(AT_FDCWD, c->api_key_file, text, sizeof text);
	if (n < 0) {
		err_set(e, (int)n, "read the key file '%s'", c->api_key_file);
		return -EINVAL;
	}
	text[strcspn(text, "\r\n")] = '\0';
	if (!text[0])
		return err_say(e, -EINVAL, "the key file '%s' begins with an empty line", c->api_key_file);
	set_text(&c->api_key, text);
	explicit_bzero(text, sizeof text);
	return 0;
}

int config_load(struct config *c, int argc, char *const argv[], char *const environ_[], struct err *e)
{
	const char *file = find_env(environ_, "TOMBOLO_", "CONFIG");
	int r = 0;

	/* Which file comes first of all, although it is the weakest of the three sources. */
	if (file) set_text(&c->config, file);
	if (r == 0) r = load_flags(c, argc, argv, "config", e);
	if (r == 0) r = load_file(c, e);
	if (r == 0) r = load_env(c, environ_, e);
	if (r == 0) r = load_flags(c, argc, argv, NULL, e);
	if (r == 0) r = load_key_file(c, e);
	if (r == 0) r = config_check(c, e);
	return r;
}

int config_check(const struct config *c, struct err *e)
{
	struct address list[ADDRESSES_MAX];
	int count = addresses_parse(c->listen, list, e);

	if (count < 0) return count;
	if (c->sleep_after && strcmp(c->disk_quota, "tmpfs") == 0)
		return err_say(
			e, -EINVAL,
			"sleep-after keeps files on disk, and disk-quota = tmpfs keeps them in memory");
	for (int i = 0; i < count && !c->api_key[0]; i++) {
		char text[ADDRESS_TEXT];

		if (address_is_loopback(&list[i])) continue;
		address_text(&list[i], text);
		return err_say(e, -EINVAL,
			       "others can reach %s: set a key (--api-key-file or SANDBOX_API_KEY), or "
			       "listen on 127.0.0.1",
			       text);
	}
	return 0;
}

/* ---- from program to program: "name=value" and a NUL, for every option ---- */

#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
#define WRITTEN_MAX (64u << 10)

static void write_option(FILE *out, const struct config *c, const struct option *o)
{
	char name[NAME_ROOM];

	(void)fprintf(out, "%s=", spell(o, false, name));
	switch (o->type) {
	case TEXT:
	case SECRET:
	case ADDRESSES: (void)fputs(*CONST_FIELD(TEXT, c, o), out); break;
	case BOOL: (void)fputs(*CONST_FIELD(BOOL, c, o) ? "yes" : "no", out); break;
	case COUNT: (void)fprintf(out, "%u", *CONST_FIELD(COUNT, c, o)); break;
	case BYTES:
	case MILLIS: (void)fprintf(out, "%llu", (unsigned long long)*CONST_FIELD(BYTES, c, o)); break;
	case SECONDS: (void)fprintf(out, "%llums", (unsigned long long)*CONST_FIELD(SECONDS, c, o)); break;
	}
	(void)fputc('\0', out);
}

int config_write(const struct config *c, int *ret_fd, struct err *e)
{
	auto_close int fd = memfd_create("tombolo-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	auto_free char *text = NULL;
	size_t len = 0;
	FILE *out;
	int r;

	if (fd < 0) return err_set(e, -errno, "make the memory file for the settings");
	out = open_memstream(&text, &len);
	if (!out) abort();
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		write_option(out, c, &options[i]);
	(void)fclose(out);
	r = fd_write_all(fd, text, len);
	explicit_bzero(text, len);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0) r = -errno;
	if (r < 0) return err_set(e, r, "write the settings");
	*ret_fd = take_fd(&fd);
	return 0;
}

int config_read_fd(int fd, struct config *c, struct err *e)
{
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0) return err_set(e, -errno, "read the settings");
	if (st.st_size <= 0 || st.st_size > (off_t)WRITTEN_MAX)
		return err_say(e, -EINVAL, "these are no settings");
	size_t len = (size_t)st.st_size;
	auto_free char *text = mem_new(len + 1);
	/* pread: two programs share the descriptor's offset. */
	if (pread(fd, text, len, 0) != (ssize_t)len) return err_say(e, -EIO, "the settings are cut");
	for (char *at = text; at < text + len && r == 0; at += strlen(at) + 1) {
		char *value = strchr(at, '=');

		if (!value) return err_say(e, -EINVAL, "these are no settings");
		*value++ = '\0';
		r = set_named(c, at, value, "settings", e);
		at = value;
	}
	explicit_bzero(text, len);
	return r;
}

/* ---- help ---- */

static const char *value_hint(const struct option *o)
{
	switch (o->type) {
	case TEXT: return o->allowed[0] ? o->allowed : "TEXT";
	case SECRET: return "KEY";
	case BOOL: return NULL;
	case COUNT: return o->allowed;
	case BYTES: return "BYTES";
	case MILLIS: return "MS";
	case SECONDS: return "SECONDS";
	case ADDRESSES: return "HOST:PORT[=PROFILE],...";
	}
	return NULL;
}

void config_help(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const struct option *o = &options[i];
		const char *hint = value_hint(o);
		char flag[NAME_ROOM], env[NAME_ROOM];

		(void)fprintf(out, "  --%s%s%s\n      %s\n      ", spell(o, false, flag), hint ? " " : "",
			      hint ? hint : "", o->help);
		if (o->standard[0]) (void)fprintf(out, "default %s; ", o->standard);
		(void)fprintf(out, "environment TOMBOLO_%s%s%s\n", spell(o, true, env),
			      o->contract[0] ? " or " : "", o->contract);
	}
}
