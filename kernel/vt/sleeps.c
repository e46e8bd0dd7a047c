/* Calls that sleep. */
#define _GNU_SOURCE
#include "vt.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <threads.h>
#include <unistd.h>

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *left)
{
	VT_REAL(clock_nanosleep);
	struct timespec t;
	if (flags & TIMER_ABSTIME)
		return real_clock_nanosleep(clock, flags, vt_deadline(clock, request, &t), left);
	int result = real_clock_nanosleep(clock, flags, vt_stretched(request, &t), left);
	if (result == EINTR && left)
		vt_shrink_timespec(left);
	return result;
}

EXPORT int nanosleep(const struct timespec *request, struct timespec *left)
{
	VT_REAL(nanosleep);
	struct timespec t, rest = {0};
	int result = real_nanosleep(vt_stretched(request, &t), left ? &rest : NULL);
	if (result && left && (rest.tv_sec || rest.tv_nsec)) {
		vt_shrink_timespec(&rest);
		*left = rest;
	}
	return result;
}

EXPORT int usleep(useconds_t us)
{
	struct timespec request = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
	return nanosleep(&request, NULL);
}

EXPORT unsigned sleep(unsigned seconds)
{
	struct timespec request = {.tv_sec = seconds}, left = {0};
	if (nanosleep(&request, &left) == 0)
		return 0;
	return (unsigned)left.tv_sec + (left.tv_nsec >= NS / 2);
}

EXPORT int thrd_sleep(const struct timespec *request, struct timespec *left)
{
	VT_REAL(thrd_sleep);
	struct timespec t;
	int result = real_thrd_sleep(vt_stretched(request, &t), left);
	if (result && left)
		vt_shrink_timespec(left);
	return result;
}

EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict timeout)
{
	VT_REAL(sigtimedwait);
	struct timespec t;
	return real_sigtimedwait(set, info, vt_stretched(timeout, &t));
}
