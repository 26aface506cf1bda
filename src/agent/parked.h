/* parked.h - a sandbox that is nobody yet: a fresh clone of the zygote, waiting on its bond for `bind`. */
#pragma once

/* Takes BOND_FD. Becomes pid 1 of a sandbox, or ends when the keeper hangs up first. */
_Noreturn void parked_run(int bond_fd);
