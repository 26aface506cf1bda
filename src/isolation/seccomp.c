#include "isolation/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "isolation/seccomp_tree.h"
#include "isolation/syscall_numbers.h"

struct row {
	uint16_t number;
	uint8_t sandbox, front; /* enum verdict */
};

static const struct row rows[] = {
#define SYSCALL(name, sandbox, front) {__NR_##name, VERDICT_##sandbox, VERDICT_##front},
#include "isolation/syscalls.def"
};

/* Filled at the first call, which is the zygote's or a main program's before it has threads; only read
 * afterwards. */
static struct seccomp_program sandbox_program, front_program;

const struct sock_fprog *seccomp_sandbox_filter(void)
{
	uint8_t verdicts[SYSCALL_NUMBERS] = {0};

	if (sandbox_program.prog.len) return &sandbox_program.prog;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		verdicts[rows[i].number] = rows[i].sandbox;
	seccomp_tree_build(verdicts, &sandbox_program);
	return &sandbox_program.prog;
}

const struct sock_fprog *seccomp_front_filter(void)
{
	uint8_t verdicts[SYSCALL_NUMBERS] = {0};

	if (front_program.prog.len) return &front_program.prog;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		verdicts[rows[i].number] = rows[i].front;
	seccomp_tree_build(verdicts, &front_program);
	return &front_program.prog;
}

/* TSYNC: threads that are there already get it too. */
int seccomp_load(const struct sock_fprog *filter, struct err *e)
{
	long r = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, filter);

	if (r < 0) return err_set(e, -errno, "load a system call filter");
	if (r > 0) return err_say(e, -ESRCH, "thread %ld cannot take the system call filter", r);
	return 0;
}
