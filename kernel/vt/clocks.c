/* Calls that read a clock. */
#define _GNU_SOURCE
#include "vt.h"

#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
	VT_REAL(clock_gettime);
	int result = real_clock_gettime(clock, time);
	if (result == 0 && time)
		*time = vt_timespec(vt_to_virtual(clock, vt_ns(time)));
	return result;
}

EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	VT_REAL(gettimeofday);
	int result = real_gettimeofday(time, zone);
	struct timespec now;
	if (result == 0 && time) {
		clock_gettime(CLOCK_REALTIME, &now);
		*time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
	}
	return result;
}

EXPORT time_t time(time_t *into)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (into)
		*into = now.tv_sec;
	return now.tv_sec;
}

EXPORT int timespec_get(struct timespec *time, int base)
{
	if (base != TIME_UTC)
		return 0;
	clock_gettime(CLOCK_REALTIME, time);
	return base;
}

/* CPU time. */

EXPORT clock_t clock(void)
{
	struct timespec used;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used))
		return -1;
	return used.tv_sec * CLOCKS_PER_SEC + used.tv_nsec / (NS / CLOCKS_PER_SEC);
}

static void shrink_usage(struct rusage *usage)
{
	if (usage->ru_utime.tv_sec || usage->ru_utime.tv_usec)
		vt_shrink_timeval(&usage->ru_utime);
	if (usage->ru_stime.tv_sec || usage->ru_stime.tv_usec)
		vt_shrink_timeval(&usage->ru_stime);
}

EXPORT int getrusage(__rusage_who_t who, struct rusage *usage)
{
	VT_REAL(getrusage);
	int result = real_getrusage(who, usage);
	if (result == 0)
		shrink_usage(usage);
	return result;
}

EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	VT_REAL(wait3);
	pid_t result = real_wait3(status, options, usage);
	if (result > 0 && usage)
		shrink_usage(usage);
	return result;
}

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	VT_REAL(wait4);
	pid_t result = real_wait4(pid, status, options, usage);
	if (result > 0 && usage)
		shrink_usage(usage);
	return result;
}

/* The result counts from an arbitrary time, so it needs no epoch. */
EXPORT clock_t times(struct tms *used)
{
	VT_REAL(times);
	clock_t result = real_times(used);
	if (result != (clock_t)-1 && used) {
		used->tms_utime = vt_shrink(used->tms_utime);
		used->tms_stime = vt_shrink(used->tms_stime);
		used->tms_cutime = vt_shrink(used->tms_cutime);
		used->tms_cstime = vt_shrink(used->tms_cstime);
	}
	return result == (clock_t)-1 ? result : vt_shrink(result);
}
