/* syscall(): programs and runtimes that wait on a futex have no other function for it. */
#define _GNU_SOURCE
#include "vt.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

typedef long (*call_t)(long, ...);

static long futex(call_t real, long a, long operation, long c, long timeout, long e, long f)
{
	struct timespec t;
	const struct timespec *given = (const struct timespec *)timeout;
	clockid_t clock = operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
		given = vt_stretched(given, &t);
		break;
	case FUTEX_LOCK_PI:
		given = vt_deadline(CLOCK_REALTIME, given, &t);
		break;
	case FUTEX_LOCK_PI2:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
		given = vt_deadline(clock, given, &t);
		break;
	}
	return real(SYS_futex, a, operation, c, given, e, f);
}

EXPORT long syscall(long number, ...)
{
	static call_t real;
	if (!real)
		real = (call_t)dlsym(RTLD_NEXT, "syscall");
	/* A call with fewer arguments leaves the rest undefined, and the kernel ignores them. */
	va_list arguments;
	va_start(arguments, number);
	long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long);
	long d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
	va_end(arguments);

	struct timespec t;
	switch (number) {
	case SYS_futex:
		return futex(real, a, b, c, d, e, f);
	case SYS_futex_waitv:
		return real(number, a, b, c, vt_deadline((clockid_t)e, (const struct timespec *)d, &t), e);
	case SYS_clock_gettime:
		return clock_gettime((clockid_t)a, (struct timespec *)b);
	case SYS_gettimeofday:
		return gettimeofday((struct timeval *)a, (void *)b);
#ifdef SYS_time
	case SYS_time:
		return time((time_t *)a);
#endif
	case SYS_nanosleep:
		return nanosleep((const struct timespec *)a, (struct timespec *)b);
	case SYS_clock_nanosleep: {
		const struct timespec *request = (const struct timespec *)c;
		struct timespec *left = (struct timespec *)d;
		if (b & TIMER_ABSTIME)
			return real(number, a, b, vt_deadline((clockid_t)a, request, &t), d);
		long result = real(number, a, b, vt_stretched(request, &t), d);
		if (result && errno == EINTR && left)
			vt_shrink_timespec(left);
		return result;
	}
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
		return real(number, a, b, c, vt_stretched((const struct timespec *)d, &t), e, f);
#endif
	}
	return real(number, a, b, c, d, e, f);
}
