#include "crowd.h"

#include <errno.h>
#include <pthread.h>

#include "base/err.h"
#include "bench.h"

struct member {
	pthread_t thread;
	pthread_rwlock_t *gate; /* held for writing until all may go */
	unsigned index;
	int (*each)(unsigned index, void *ctx, struct err *e);
	void *ctx;
	int result;
	struct err reason;
};

static void *member_main(void *arg)
{
	struct member *m = arg;

	pthread_rwlock_rdlock(m->gate);
	pthread_rwlock_unlock(m->gate);
	m->result = m->each(m->index, m->ctx, &m->reason);
	return NULL;
}

int crowd_run(int (*each)(unsigned index, void *ctx, struct err *e), void *ctx, double *ret_us, struct err *e)
{
	struct member members[CROWD_SIZE];
	pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
	unsigned count = 0;
	int result = 0;

	pthread_rwlock_wrlock(&gate);
	for (; count < CROWD_SIZE && result == 0; count++) {
		struct member *m = &members[count];
		*m = (struct member){.gate = &gate, .index = count, .each = each, .ctx = ctx};
		int r = pthread_create(&m->thread, NULL, member_main, m);
		if (r) result = err_set(e, -r, "start a thread");
	}
	if (result < 0) count--;
	double began = now_us();
	pthread_rwlock_unlock(&gate);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(members[i].thread, NULL);
		if (members[i].result < 0 && result == 0) {
			result = members[i].result;
			*e = members[i].reason;
		}
	}
	*ret_us = now_us() - began;
	pthread_rwlock_destroy(&gate);
	return result;
}
