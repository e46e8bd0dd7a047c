/* Locks, condition variables, semaphores and queues of messages: all have absolute deadlines. */
#define _GNU_SOURCE
#include "vt.h"

#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
				  const struct timespec *restrict deadline)
{
	VT_REAL(pthread_cond_timedwait);
	struct timespec t;
	clockid_t clock = vt_clock_of_deadline(vt_ns(deadline));
	return real_pthread_cond_timedwait(condition, mutex, vt_deadline(clock, deadline, &t));
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
				  const struct timespec *restrict deadline)
{
	VT_REAL(pthread_cond_clockwait);
	struct timespec t;
	return real_pthread_cond_clockwait(condition, mutex, clock, vt_deadline(clock, deadline, &t));
}

EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict deadline)
{
	VT_REAL(cnd_timedwait);
	struct timespec t;
	return real_cnd_timedwait(condition, mutex, vt_deadline(CLOCK_REALTIME, deadline, &t));
}

/* The calls below differ in their names and first argument only. */
#define TIMED(type, name)                                                                                              \
	EXPORT int name(type *restrict object, const struct timespec *restrict deadline)                               \
	{                                                                                                              \
		VT_REAL(name);                                                                                         \
		struct timespec t;                                                                                     \
		return real_##name(object, vt_deadline(CLOCK_REALTIME, deadline, &t));                                 \
	}
#define CLOCKED(type, name)                                                                                            \
	EXPORT int name(type *restrict object, clockid_t clock, const struct timespec *restrict deadline)              \
	{                                                                                                              \
		VT_REAL(name);                                                                                         \
		struct timespec t;                                                                                     \
		return real_##name(object, clock, vt_deadline(clock, deadline, &t));                                   \
	}

TIMED(sem_t, sem_timedwait)
CLOCKED(sem_t, sem_clockwait)
TIMED(pthread_mutex_t, pthread_mutex_timedlock)
CLOCKED(pthread_mutex_t, pthread_mutex_clocklock)
TIMED(pthread_rwlock_t, pthread_rwlock_timedrdlock)
TIMED(pthread_rwlock_t, pthread_rwlock_timedwrlock)
CLOCKED(pthread_rwlock_t, pthread_rwlock_clockrdlock)
CLOCKED(pthread_rwlock_t, pthread_rwlock_clockwrlock)
TIMED(mtx_t, mtx_timedlock)

EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *deadline)
{
	VT_REAL(pthread_timedjoin_np);
	struct timespec t;
	return real_pthread_timedjoin_np(thread, result, vt_deadline(CLOCK_REALTIME, deadline, &t));
}

EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *deadline)
{
	VT_REAL(pthread_clockjoin_np);
	struct timespec t;
	return real_pthread_clockjoin_np(thread, result, clock, vt_deadline(clock, deadline, &t));
}

EXPORT int mq_timedsend(mqd_t queue, const char *message, size_t length, unsigned priority,
			const struct timespec *deadline)
{
	VT_REAL(mq_timedsend);
	struct timespec t;
	return real_mq_timedsend(queue, message, length, priority, vt_deadline(CLOCK_REALTIME, deadline, &t));
}

EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t length, unsigned *restrict priority,
			       const struct timespec *restrict deadline)
{
	VT_REAL(mq_timedreceive);
	struct timespec t;
	return real_mq_timedreceive(queue, message, length, priority, vt_deadline(CLOCK_REALTIME, deadline, &t));
}
