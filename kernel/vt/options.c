/* Options of sockets that are durations or rates. */
#define _GNU_SOURCE
#include "vt.h"

#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* Numbers of options with 64-bit times, which headers hide on 64-bit machines. */
#define RCVTIMEO_NEW 66
#define SNDTIMEO_NEW 67
/* The longest value that the kernel accepts (MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL). */
#define KEEP_MOST 32767

enum kind { PLAIN, TIMEVAL, INTEGER, LINGER, RATE, INFO };

static enum kind kind_of(int level, int option)
{
	if (level == SOL_SOCKET)
		switch (option) {
		case SO_RCVTIMEO:
		case SO_SNDTIMEO:
		case RCVTIMEO_NEW:
		case SNDTIMEO_NEW:
			return TIMEVAL;
		case SO_LINGER:
			return LINGER;
		case SO_MAX_PACING_RATE:
			return RATE;
		}
	if (level == IPPROTO_TCP)
		switch (option) {
		case TCP_USER_TIMEOUT:
		case TCP_KEEPIDLE:
		case TCP_KEEPINTVL:
			return INTEGER;
		case TCP_INFO:
			return INFO;
		}
	return PLAIN;
}

static int stretched_int(int option, int value)
{
	int64_t most = option == TCP_USER_TIMEOUT ? INT_MAX : KEEP_MOST;
	/* An invalid value stays invalid. */
	if (value <= 0 || value > most)
		return value;
	int64_t real = vt_stretch(value);
	return real > most ? (int)most : (int)real;
}

EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	VT_REAL(setsockopt);
	union {
		struct timeval time;
		struct linger linger;
		int integer;
		unsigned rate;
		unsigned long long wide;
	} real;
	switch (value ? kind_of(level, option) : PLAIN) {
	case TIMEVAL:
		if (length < sizeof real.time)
			break;
		memcpy(&real.time, value, sizeof real.time);
		vt_stretch_timeval(&real.time);
		return real_setsockopt(fd, level, option, &real.time, sizeof real.time);
	case LINGER:
		if (length < sizeof real.linger)
			break;
		memcpy(&real.linger, value, sizeof real.linger);
		if (real.linger.l_linger > 0)
			real.linger.l_linger = stretched_int(TCP_USER_TIMEOUT, real.linger.l_linger);
		return real_setsockopt(fd, level, option, &real.linger, sizeof real.linger);
	case INTEGER:
		if (length < sizeof real.integer)
			break;
		memcpy(&real.integer, value, sizeof real.integer);
		real.integer = stretched_int(option, real.integer);
		return real_setsockopt(fd, level, option, &real.integer, sizeof real.integer);
	case RATE:
		/* All ones is "no limit". */
		if (length == sizeof real.wide) {
			memcpy(&real.wide, value, sizeof real.wide);
			if (~real.wide)
				real.wide = vt_rate_to_real(real.wide);
			return real_setsockopt(fd, level, option, &real.wide, sizeof real.wide);
		}
		if (length != sizeof real.rate)
			break;
		memcpy(&real.rate, value, sizeof real.rate);
		if (~real.rate)
			real.rate = (unsigned)vt_rate_to_real(real.rate);
		return real_setsockopt(fd, level, option, &real.rate, sizeof real.rate);
	case PLAIN:
	case INFO:
		break;
	}
	return real_setsockopt(fd, level, option, value, length);
}

/* Programs print round-trip times and rates of TCP_INFO. A kernel fills as much of the structure as it knows, and a
 * program can ask for less: a field is converted if it is inside. */
#define DURATION(field)                                                                                                \
	if (offsetof(struct tcp_info, field) + sizeof info->field <= length)                                           \
	info->field = (__typeof__(info->field))vt_shrink((int64_t)info->field)
#define BIT_RATE(field)                                                                                                \
	if (offsetof(struct tcp_info, field) + sizeof info->field <= length && ~info->field)                           \
	info->field = vt_rate_to_virtual(info->field)

static void convert_info(struct tcp_info *info, size_t length)
{
	DURATION(tcpi_rto);
	DURATION(tcpi_ato);
	DURATION(tcpi_last_data_sent);
	DURATION(tcpi_last_ack_sent);
	DURATION(tcpi_last_data_recv);
	DURATION(tcpi_last_ack_recv);
	DURATION(tcpi_rtt);
	DURATION(tcpi_rttvar);
	DURATION(tcpi_rcv_rtt);
	DURATION(tcpi_busy_time);
	DURATION(tcpi_rwnd_limited);
	DURATION(tcpi_sndbuf_limited);
	/* The kernel's "no measurement yet" is all ones. */
	if (length >= offsetof(struct tcp_info, tcpi_min_rtt) + sizeof info->tcpi_min_rtt && ~info->tcpi_min_rtt)
		DURATION(tcpi_min_rtt);
	BIT_RATE(tcpi_pacing_rate);
	BIT_RATE(tcpi_max_pacing_rate);
	BIT_RATE(tcpi_delivery_rate);
}

EXPORT int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict length)
{
	VT_REAL(getsockopt);
	int result = real_getsockopt(fd, level, option, value, length);
	if (result || !value || !length)
		return result;
	switch (kind_of(level, option)) {
	case TIMEVAL: {
		struct timeval *time = value;
		if (*length >= sizeof *time && (time->tv_sec || time->tv_usec))
			vt_shrink_timeval(time);
		break;
	}
	case LINGER: {
		struct linger *linger = value;
		if (*length >= sizeof *linger)
			linger->l_linger = (int)vt_shrink(linger->l_linger);
		break;
	}
	case INTEGER:
		if (*length >= sizeof(int))
			*(int *)value = (int)vt_shrink(*(int *)value);
		break;
	case RATE:
		if (*length == sizeof(unsigned long long) && ~*(unsigned long long *)value)
			*(unsigned long long *)value = vt_rate_to_virtual(*(unsigned long long *)value);
		else if (*length == sizeof(unsigned) && ~*(unsigned *)value) {
			uint64_t rate = vt_rate_to_virtual(*(unsigned *)value);
			*(unsigned *)value = rate > UINT_MAX ? UINT_MAX : (unsigned)rate;
		}
		break;
	case INFO:
		convert_info(value, *length);
		break;
	case PLAIN:
		break;
	}
	return result;
}
