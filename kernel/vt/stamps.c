/* Times at which the kernel received packets. ping subtracts them from its own clock. */
#define _GNU_SOURCE
#include "vt.h"

#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Both numbers of each option: headers have one of them, by the size of a time. */
#define STAMP_OLD 29
#define STAMP_NEW 63
#define STAMPNS_OLD 35
#define STAMPNS_NEW 64
#define STAMPING_OLD 37
#define STAMPING_NEW 65

static void convert(struct timespec *stamp)
{
	if (stamp->tv_sec || stamp->tv_nsec)
		*stamp = vt_timespec(vt_to_virtual(CLOCK_REALTIME, vt_ns(stamp)));
}

static void convert_timeval(struct timeval *stamp)
{
	struct timespec t = {.tv_sec = stamp->tv_sec, .tv_nsec = stamp->tv_usec * 1000};
	convert(&t);
	*stamp = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
}

static void convert_message(struct msghdr *message)
{
	if (!message->msg_control)
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		struct timeval tv;
		struct timespec ts;
		size_t length = c->cmsg_len - CMSG_LEN(0);
		/* The data of a control message need not be aligned. */
		if ((c->cmsg_type == STAMP_OLD || c->cmsg_type == STAMP_NEW) && length >= sizeof tv) {
			memcpy(&tv, CMSG_DATA(c), sizeof tv);
			convert_timeval(&tv);
			memcpy(CMSG_DATA(c), &tv, sizeof tv);
		} else if ((c->cmsg_type == STAMPNS_OLD || c->cmsg_type == STAMPNS_NEW ||
			    c->cmsg_type == STAMPING_OLD || c->cmsg_type == STAMPING_NEW) &&
			   length >= sizeof ts) {
			/* The first of the three times of SO_TIMESTAMPING is the software's, on the realtime clock.
			 * The clock of the hardware's is unknown. */
			memcpy(&ts, CMSG_DATA(c), sizeof ts);
			convert(&ts);
			memcpy(CMSG_DATA(c), &ts, sizeof ts);
		}
	}
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	VT_REAL(recvmsg);
	ssize_t result = real_recvmsg(fd, message, flags);
	if (result >= 0)
		convert_message(message);
	return result;
}

EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	VT_REAL(recvmmsg);
	struct timespec real;
	struct timespec *given = (struct timespec *)vt_stretched(timeout, &real);
	int result = real_recvmmsg(fd, messages, count, flags, given);
	/* The kernel leaves the rest of the time in the timeout. */
	if (result >= 0 && given && given == &real) {
		vt_shrink_timespec(&real);
		*timeout = real;
	}
	for (int i = 0; i < result; i++)
		convert_message(&messages[i].msg_hdr);
	return result;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	VT_REAL(ioctl);
	va_list arguments;
	va_start(arguments, request);
	void *value = va_arg(arguments, void *);
	va_end(arguments);
	int result = real_ioctl(fd, request, value);
	if (result == 0 && value && (request == SIOCGSTAMP_OLD || request == SIOCGSTAMP_NEW))
		convert_timeval(value);
	else if (result == 0 && value && (request == SIOCGSTAMPNS_OLD || request == SIOCGSTAMPNS_NEW))
		convert(value);
	return result;
}
