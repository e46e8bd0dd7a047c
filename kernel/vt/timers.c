/* Interval timers, POSIX timers and timer file descriptors. */
#define _GNU_SOURCE
#include "vt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Zero means "disarmed" and stays zero in all conversions. */

static void shrink_itimerval(struct itimerval *value)
{
	if (value->it_value.tv_sec || value->it_value.tv_usec)
		vt_shrink_timeval(&value->it_value);
	if (value->it_interval.tv_sec || value->it_interval.tv_usec)
		vt_shrink_timeval(&value->it_interval);
}

EXPORT int setitimer(__itimer_which_t which, const struct itimerval *restrict value, struct itimerval *restrict former)
{
	VT_REAL(setitimer);
	struct itimerval real;
	if (value) {
		real = *value;
		vt_stretch_timeval(&real.it_value);
		vt_stretch_timeval(&real.it_interval);
	}
	int result = real_setitimer(which, value ? &real : NULL, former);
	if (result == 0 && former)
		shrink_itimerval(former);
	return result;
}

EXPORT int getitimer(__itimer_which_t which, struct itimerval *value)
{
	VT_REAL(getitimer);
	int result = real_getitimer(which, value);
	if (result == 0)
		shrink_itimerval(value);
	return result;
}

EXPORT unsigned alarm(unsigned seconds)
{
	struct itimerval value = {.it_value.tv_sec = seconds}, former;
	if (setitimer(ITIMER_REAL, &value, &former))
		return 0;
	/* As in the kernel, the rest is rounded, but an armed timer never reads 0. */
	unsigned left = (unsigned)former.it_value.tv_sec;
	if (former.it_value.tv_usec >= 500000 || (left == 0 && former.it_value.tv_usec))
		left++;
	return left;
}

EXPORT useconds_t ualarm(useconds_t value, useconds_t interval)
{
	struct itimerval next = {.it_value = {value / 1000000, value % 1000000},
				 .it_interval = {interval / 1000000, interval % 1000000}};
	struct itimerval former;
	if (setitimer(ITIMER_REAL, &next, &former))
		return (useconds_t)-1;
	return (useconds_t)(former.it_value.tv_sec * 1000000 + former.it_value.tv_usec);
}

static void shrink_itimerspec(struct itimerspec *value)
{
	vt_shrink_timespec(&value->it_value);
	vt_shrink_timespec(&value->it_interval);
}

/* Converts a new setting. The clock matters for absolute times only. */
static struct itimerspec real_setting(clockid_t clock, bool absolute, const struct itimerspec *value)
{
	struct itimerspec real = *value;
	struct timespec t;
	bool armed = value->it_value.tv_sec || value->it_value.tv_nsec;
	if (absolute && armed) {
		real.it_value = *vt_deadline(clock, &value->it_value, &t);
		/* A time before the start of the clock is over, and zero would disarm the timer. */
		if (!real.it_value.tv_sec && !real.it_value.tv_nsec)
			real.it_value.tv_nsec = 1;
	} else {
		real.it_value = *vt_stretched(&value->it_value, &t);
	}
	real.it_interval = *vt_stretched(&value->it_interval, &t);
	return real;
}

EXPORT int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict value,
			 struct itimerspec *restrict former)
{
	VT_REAL(timer_settime);
	if (!value)
		return real_timer_settime(timer, flags, value, former);
	clockid_t clock = vt_clock_of_deadline(vt_ns(&value->it_value));
	struct itimerspec real = real_setting(clock, flags & TIMER_ABSTIME, value);
	int result = real_timer_settime(timer, flags, &real, former);
	if (result == 0 && former)
		shrink_itimerspec(former);
	return result;
}

EXPORT int timer_gettime(timer_t timer, struct itimerspec *value)
{
	VT_REAL(timer_gettime);
	int result = real_timer_gettime(timer, value);
	if (result == 0)
		shrink_itimerspec(value);
	return result;
}

/* The clock of a timer descriptor. The kernel tells it in /proc, also for a descriptor that was inherited. */
static clockid_t clock_of(int fd, int64_t deadline)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
	if (file >= 0)
		close(file);
	if (length > 0) {
		text[length] = 0;
		const char *line = strstr(text, "clockid:");
		if (line)
			return atoi(line + 8);
	}
	return vt_clock_of_deadline(deadline);
}

EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *former)
{
	VT_REAL(timerfd_settime);
	if (!value)
		return real_timerfd_settime(fd, flags, value, former);
	bool absolute = flags & TFD_TIMER_ABSTIME;
	clockid_t clock = absolute ? clock_of(fd, vt_ns(&value->it_value)) : CLOCK_MONOTONIC;
	struct itimerspec real = real_setting(clock, absolute, value);
	int result = real_timerfd_settime(fd, flags, &real, former);
	if (result == 0 && former)
		shrink_itimerspec(former);
	return result;
}

EXPORT int timerfd_gettime(int fd, struct itimerspec *value)
{
	VT_REAL(timerfd_gettime);
	int result = real_timerfd_gettime(fd, value);
	if (result == 0)
		shrink_itimerspec(value);
	return result;
}
