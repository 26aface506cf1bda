#include "agent/view.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "agent/limits.h"
#include "agent/reactor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/machine.h"
#include "wire/message.h"

#define TICK_MS     1000
#define TICK_MAX_MS 8000  /* while nothing changes */
#define TICKS_A_S   100   /* USER_HZ */
#define LOAD_ONE    65536 /* of the load averages, which are fixed-point numbers */
#define TEXT_MAX    8192

static void on_tick(struct timer *t);

static struct {
	cpu_set_t host, mine; /* processors there are; that we are held to */
	unsigned host_count, count;
	uint32_t base_id;
	uint64_t born_ms, written_ms;
	uint64_t cpu_us, cgroup_cpu_us; /* used in all; as last read of a cgroup, which begins anew when it is
					   made anew */
	uint64_t memory;                /* in use, when last written */
	uint64_t load[3];
	uint64_t tick_ms;
	struct timer tick;
} view = {.tick = {.on_time = on_tick}};

/* ---- processors ---- */

static unsigned count_wanted(void)
{
	uint32_t milli = limits_cpu_milli();
	unsigned wanted = (milli + 999) / 1000;

	return milli ? MIN(wanted, view.host_count) : view.host_count;
}

/* COUNT of the host's, beginning with one that depends on who we are. */
static void choose_processors(void)
{
	unsigned skip = view.host_count ? (view.base_id >> 16) * view.count % view.host_count : 0;
	unsigned taken = 0, nth = 0;

	CPU_ZERO(&view.mine);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned cpu = 0; cpu < CPU_SETSIZE && taken < view.count; cpu++) {
			if (!CPU_ISSET(cpu, &view.host) || nth++ < skip || CPU_ISSET(cpu, &view.mine))
				continue;
			CPU_SET(cpu, &view.mine);
			taken++;
		}
}

void view_take_processors(void)
{
	if (view.count < view.host_count)
		(void)syscall(SYS_sched_setaffinity, 0, sizeof view.mine, &view.mine);
}

/* ---- texts ---- */

struct text {
	char at[TEXT_MAX];
	size_t len;
	off_t written; /* before AT: a long text leaves in pieces */
};

static struct text text; /* one at a time; not on the stack, which stays small */

static __attribute__((format(printf, 1, 2))) void add(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text.at + text.len, sizeof text.at - text.len, format, args);
	va_end(args);
	if (n > 0) text.len = MIN(text.len + (size_t)n, sizeof text.at - 1);
}

static void put_piece(enum machine_file file)
{
	int fd = machine_fd(file);

	if (fd >= 0) (void)!pwrite(fd, text.at, text.len, text.written);
	text.written += (off_t)text.len;
	text.len = 0;
}

/* Readers open, read and close: they see the old text or the new one, or, rarely, the beginning of one. */
static void put(enum machine_file file)
{
	int fd = machine_fd(file);

	put_piece(file);
	if (fd >= 0) (void)!ftruncate(fd, text.written);
	text.written = 0;
}

/* ---- what does not change ---- */

static void add_processor(unsigned index)
{
	for (const char *line = machine_processor(), *next; *line; line = next) {
		next = strchr(line, '\n');
		next = next ? next + 1 : line + strlen(line);
		if (strncmp(line, "processor", 9) == 0) add("processor\t: %u\n", index);
		else if (strncmp(line, "core id", 7) == 0) add("core id\t\t: %u\n", index);
		else if (strncmp(line, "siblings", 8) == 0) add("siblings\t: %u\n", view.count);
		else if (strncmp(line, "cpu cores", 9) == 0) add("cpu cores\t: %u\n", view.count);
		else add("%.*s", (int)(next - line), line);
	}
	add("\n");
}

static void put_fixed(void)
{
	uint32_t pids = limits_pids(), cpu = limits_cpu_milli();
	uint64_t memory = limits_memory();

	for (unsigned i = 0; i < view.count; i++) {
		add_processor(i);
		put_piece(MACHINE_CPUINFO);
	}
	put(MACHINE_CPUINFO);
	add("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
	put(MACHINE_SWAPS);
	if (memory) add("%" PRIu64 "\n", memory);
	else add("max\n");
	put(MACHINE_MEMORY_MAX);
	if (cpu && cpu < view.host_count * 1000) add("%u 100000\n", cpu * 100);
	else add("max 100000\n");
	put(MACHINE_CPU_MAX);
	if (pids) add("%u\n", pids);
	else add("max\n");
	put(MACHINE_PIDS_MAX);
}

/* ---- what changes ---- */

static uint64_t memory_total(void)
{
	struct sysinfo host;
	uint64_t total = limits_memory(),
		 all = sysinfo(&host) < 0 ? total : (uint64_t)host.totalram * host.mem_unit;

	return total && total < all ? total : all;
}

/* v1 has one word for it, v2 another. */
static uint64_t memory_stat(const char *v1, const char *v2)
{
	uint64_t n = limits_count(LIMITS_MEMORY_STAT, v1);

	return n ? n : limits_count(LIMITS_MEMORY_STAT, v2);
}

static void put_memory(void)
{
	uint64_t total = memory_total() / 1024, used = MIN(view.memory / 1024, total);
	uint64_t cached = MIN(memory_stat("total_cache", "file") / 1024, used), free = total - used;
	uint64_t shared = MIN(memory_stat("total_shmem", "shmem") / 1024, cached);

	const struct {
		const char *name;
		uint64_t kib;
	} lines[] = {
		{"MemTotal:", total},
		{"MemFree:", free},
		{"MemAvailable:", free + cached - shared},
		{"Buffers:", 0},
		{"Cached:", cached},
		{"SwapCached:", 0},
		{"Active:", used},
		{"Inactive:", 0},
		{"SwapTotal:", 0},
		{"SwapFree:", 0},
		{"Dirty:", 0},
		{"Writeback:", 0},
		{"AnonPages:", used - cached},
		{"Mapped:", 0},
		{"Shmem:", shared},
		{"Slab:", 0},
		{"SReclaimable:", 0},
		{"SUnreclaim:", 0},
		{"KernelStack:", 0},
		{"PageTables:", 0},
		{"CommitLimit:", total},
		{"Committed_AS:", used},
	};

	for (unsigned i = 0; i < ARRAY_LEN(lines); i++)
		add("%-15s %8" PRIu64 " kB\n", lines[i].name, lines[i].kib);
	put(MACHINE_MEMINFO);
}

/* Of v1 we only learn what those used that are reaped already. */
static uint64_t cpu_read(void)
{
	char buf[256];
	struct rusage use;
	uint64_t now;

	if (fd_read_file(limits_dir(), "cpu.stat", buf, sizeof buf) > 0 &&
	    (now = limits_number(buf, "usage_usec"))) {
		uint64_t more = now >= view.cgroup_cpu_us ? now - view.cgroup_cpu_us : now;

		view.cgroup_cpu_us = now;
		return view.cpu_us + more;
	}
	if (getrusage(RUSAGE_CHILDREN, &use) < 0) return view.cpu_us;
	now = (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
	      (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
	return MAX(now, view.cpu_us);
}

static void put_stat(uint64_t up_ms)
{
	uint64_t all = up_ms * view.count / (1000 / TICKS_A_S),
		 busy = MIN(view.cpu_us / (1000000 / TICKS_A_S), all);
	uint64_t n = MAX(view.count, 1u);

	add("cpu  %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0 0 0\n", busy, all - busy);
	for (unsigned i = 0; i < view.count; i++) {
		if (text.len > TEXT_MAX / 2) put_piece(MACHINE_STAT);
		add("cpu%u %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0 0 0\n", i, busy / n, (all - busy) / n);
	}
	add("intr 0\nctxt 0\nbtime %" PRIu64 "\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n",
	    (clock_wall_ms() - up_ms) / 1000);
	put(MACHINE_STAT);
	add("%" PRIu64 ".%02u %" PRIu64 ".%02u\n", up_ms / 1000, (unsigned)(up_ms / 10 % 100),
	    (all - busy) / TICKS_A_S, (unsigned)((all - busy) % TICKS_A_S));
	put(MACHINE_UPTIME);
}

/* The load is how many processors were kept busy, averaged as the kernel does: over one, five and fifteen
 * minutes. */
static void put_load(uint64_t used_us, uint64_t passed_ms)
{
	static const uint64_t spans_ms[] = {60000, 300000, 900000};
	uint64_t now = passed_ms ? used_us * LOAD_ONE / 1000 / passed_ms : 0;

	for (unsigned i = 0; i < ARRAY_LEN(spans_ms); i++) {
		uint64_t weight = MIN(passed_ms, spans_ms[i]);

		view.load[i] = (view.load[i] * (spans_ms[i] - weight) + now * weight) / spans_ms[i];
		add("%u.%02u ", (unsigned)(view.load[i] / LOAD_ONE),
		    (unsigned)(view.load[i] % LOAD_ONE * 100 / LOAD_ONE));
	}
	add("1/%" PRIu64 " 1\n", MAX(limits_processes(), (uint64_t)1));
	put(MACHINE_LOADAVG);
}

/* Whether something happened since the last time. */
static bool put_changing(void)
{
	uint64_t now = clock_ms(), used = cpu_read(), memory = limits_count(LIMITS_MEMORY_USAGE, NULL);
	bool changed = used != view.cpu_us || memory != view.memory;

	put_load(used - view.cpu_us, view.written_ms ? now - view.written_ms : 0);
	view.cpu_us = used;
	view.memory = memory;
	view.written_ms = now;
	put_memory();
	put_stat(now - view.born_ms);
	return changed;
}

static void on_tick(struct timer *t)
{
	view.tick_ms = put_changing() ? TICK_MS : MIN(view.tick_ms * 2, (uint64_t)TICK_MAX_MS);
	timer_start(t, view.tick_ms);
}

/* ---- from outside ---- */

void view_init(uint32_t base_id)
{
	view.base_id = base_id;
	view.born_ms = clock_ms();
	if (sched_getaffinity(0, sizeof view.host, &view.host) == 0)
		view.host_count = (unsigned)CPU_COUNT(&view.host);
	view.count = view.host_count;
}

void view_limits_changed(void)
{
	view.count = count_wanted();
	choose_processors();
	put_fixed();
	(void)put_changing();
}

void view_begin(void)
{
	view.tick_ms = TICK_MS;
	timer_start(&view.tick, clock_ms() - view.written_ms < TICK_MS ? TICK_MS : 0);
}

void view_end(void)
{
	timer_stop(&view.tick);
}
