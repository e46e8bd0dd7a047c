/* Calls that wait for file descriptors. */
#define _GNU_SOURCE
#include "vt.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>

EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
		  struct timeval *restrict timeout)
{
	VT_REAL(select);
	if (!timeout)
		return real_select(count, in, out, odd, NULL);
	struct timeval real = *timeout;
	vt_stretch_timeval(&real);
	int result = real_select(count, in, out, odd, &real);
	/* Linux leaves the rest of the time in the timeout. */
	if (result >= 0) {
		if (real.tv_sec || real.tv_usec)
			vt_shrink_timeval(&real);
		*timeout = real;
	}
	return result;
}

EXPORT int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
		   const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	VT_REAL(pselect);
	struct timespec t;
	return real_pselect(count, in, out, odd, vt_stretched(timeout, &t), mask);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	VT_REAL(ppoll);
	struct timespec t;
	return real_ppoll(fds, count, vt_stretched(timeout, &t), mask);
}

/* A dilated timeout can exceed an int of milliseconds, so poll() is a ppoll(). */
EXPORT int poll(struct pollfd *fds, nfds_t count, int ms)
{
	struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	return ppoll(fds, count, ms < 0 ? NULL : &timeout, NULL);
}

/* Programs that are built with _FORTIFY_SOURCE call these. */
extern void __chk_fail(void) __attribute__((noreturn));
EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t size);
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
		       size_t size);

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t size)
{
	if (size / sizeof *fds < count)
		__chk_fail();
	return poll(fds, count, ms);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
		       size_t size)
{
	if (size / sizeof *fds < count)
		__chk_fail();
	return ppoll(fds, count, timeout, mask);
}

EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout,
			const sigset_t *mask)
{
	/* Not in C libraries before glibc 2.35. A program that calls it has it. */
	static int (*real)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
	struct timespec t;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "epoll_pwait2");
	if (!real) {
		errno = ENOSYS;
		return -1;
	}
	return real(fd, events, most, vt_stretched(timeout, &t), mask);
}

/* The kernel counts these timeouts in milliseconds; 24 days are the longest. */
static int stretched_ms(int ms)
{
	if (ms <= 0)
		return ms;
	int64_t real = (vt_stretch(ms * 1000000LL) + 999999) / 1000000;
	return real > INT_MAX ? INT_MAX : (int)real;
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
	VT_REAL(epoll_wait);
	return real_epoll_wait(fd, events, most, stretched_ms(ms));
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int most, int ms, const sigset_t *mask)
{
	VT_REAL(epoll_pwait);
	return real_epoll_pwait(fd, events, most, stretched_ms(ms), mask);
}
