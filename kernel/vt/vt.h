/* Virtual time: shared declarations of libleeward_vt.so.
 *
 * A clock of the program reads epoch + (real - epoch) / factor. Durations and deadlines that the program gives are
 * converted in the other direction before the kernel sees them. */
#ifndef LEEWARD_VT_H
#define LEEWARD_VT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define NS 1000000000LL

/* Reads the environment on the first call. Wrappers can run before the constructor of this library, because other
 * libraries have constructors too. */
void vt_start(void);

/* Time of a clock. A clock that is not dilated (for example a PTP device) is returned unchanged. */
int64_t vt_to_virtual(clockid_t clock, int64_t real);
int64_t vt_to_real(clockid_t clock, int64_t virtual);

/* Durations. Stretching rounds up, so that no timeout ends early. A result saturates at INT64_MAX. Shrinking rounds
 * down, except that a positive duration stays positive: zero often means "disarmed". */
int64_t vt_stretch(int64_t virtual);
int64_t vt_shrink(int64_t real);

/* Rates, for example bytes a second: the inverse of durations. */
uint64_t vt_rate_to_virtual(uint64_t real);
uint64_t vt_rate_to_real(uint64_t virtual);

/* The clock of an absolute deadline whose clock the caller cannot tell: condition variables and POSIX timers keep it
 * to themselves. The dates are decades apart, so the nearer one is the clock. A deadline that is equally far from both
 * is over, or never, on either. */
clockid_t vt_clock_of_deadline(int64_t deadline);

/* The same conversions of structures. An invalid structure passes unchanged, so that the kernel rejects it. The second
 * argument is storage; the result points to it, or is the first argument if there is nothing to convert. */
const struct timespec *vt_stretched(const struct timespec *from, struct timespec *into);
const struct timespec *vt_deadline(clockid_t clock, const struct timespec *from, struct timespec *into);
void vt_shrink_timespec(struct timespec *time);
void vt_shrink_timeval(struct timeval *time);
void vt_stretch_timeval(struct timeval *time);

static inline int64_t vt_ns(const struct timespec *t)
{
	return t->tv_sec > INT64_MAX / NS - 1 ? INT64_MAX : t->tv_sec * NS + t->tv_nsec;
}

static inline struct timespec vt_timespec(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS, .tv_nsec = ns % NS};
}

/* The next definition of a function: that of the C library. VT_REAL(poll) declares a pointer `real_poll`. */
#define VT_REAL(name)                                                                                                  \
	static __typeof__(&name) real_##name;                                                                          \
	if (!real_##name)                                                                                              \
	real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#endif
