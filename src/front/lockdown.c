#include "front/lockdown.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/err.h"
#include "isolation/seccomp.h"

int lockdown(struct err *e)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return err_set(e, -errno, "give up core files");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return err_set(e, -errno, "give up new privileges");
	return seccomp_load(seccomp_front_filter(), e);
}
