/* The factor, the epoch, and conversions between real and virtual time. */
#define _GNU_SOURCE
#include "vt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The factor is a fixed-point number in millionths: integers are exact, and so are decimals that people write. */
#define UNIT 1000000
#define MOST (1000000LL * UNIT)
#define CLOCKS 12

static bool started;
static int64_t factor;
/* The value of each clock at the epoch. */
static int64_t epochs[CLOCKS];
/* Deadlines before this date belong to a clock that counts from the start of the machine. */
static int64_t middle;

static int real_clock(clockid_t clock, int64_t *ns)
{
	VT_REAL(clock_gettime);
	struct timespec t;
	int result = real_clock_gettime(clock, &t);
	if (result == 0)
		*ns = vt_ns(&t);
	return result;
}

/* A wrong factor must not give wrong measurements: the program ends before it starts. */
static void fail(const char *variable, const char *value, const char *reason)
{
	char line[256];
	int length = snprintf(line, sizeof line, "libleeward_vt: %s=%.100s: %s\n", variable, value ? value : "", reason);
	if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0) {
	}
	_exit(127);
}

/* Reads a decimal number, in millionths. Returns -1 for anything else. */
static int64_t parse_factor(const char *text)
{
	int64_t value = 0;
	int decimals = -1;
	bool digits = false;
	for (; *text; text++) {
		if (*text == '.' && decimals < 0) {
			decimals = 0;
			continue;
		}
		if (*text < '0' || *text > '9' || decimals == 6 || value > MOST)
			return -1;
		value = value * 10 + (*text - '0');
		digits = true;
		if (decimals >= 0)
			decimals++;
	}
	for (int i = decimals < 0 ? 0 : decimals; i < 6; i++)
		value = value > MOST ? value : value * 10;
	return digits ? value : -1;
}

static int64_t parse_epoch(const char *text)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	return *text < '0' || *text > '9' || *end || errno ? -1 : value;
}

/* The distance between a clock and CLOCK_MONOTONIC: the one of several measurements that took the least time. */
static int64_t offset_of(clockid_t clock)
{
	int64_t best = INT64_MAX, offset = 0;
	for (int i = 0; i < 5; i++) {
		int64_t before, value, after;
		if (real_clock(CLOCK_MONOTONIC, &before) || real_clock(clock, &value) ||
		    real_clock(CLOCK_MONOTONIC, &after))
			return 0;
		if (after - before < best) {
			best = after - before;
			offset = value - (before + (after - before) / 2);
		}
	}
	return offset;
}

void vt_start(void)
{
	if (started)
		return;
	const char *text = getenv("LEEWARD_VT_FACTOR");
	if (!text)
		fail("LEEWARD_VT_FACTOR", NULL, "not set: the dilation factor, a decimal number >= 1");
	factor = parse_factor(text);
	if (factor < UNIT || factor > MOST)
		fail("LEEWARD_VT_FACTOR", text, "invalid: a decimal number from 1 to 1000000, at most 6 decimals");

	int64_t now, epoch;
	if (real_clock(CLOCK_MONOTONIC, &now))
		fail("LEEWARD_VT_FACTOR", text, "CLOCK_MONOTONIC is unavailable");
	text = getenv("LEEWARD_VT_EPOCH");
	if (text) {
		epoch = parse_epoch(text);
		if (epoch < 0)
			fail("LEEWARD_VT_EPOCH", text, "invalid: nanoseconds of CLOCK_MONOTONIC");
	} else {
		/* Children of this process have the same epoch. */
		char line[32];
		epoch = now;
		snprintf(line, sizeof line, "%lld", (long long)epoch);
		setenv("LEEWARD_VT_EPOCH", line, 1);
	}

	int64_t date = offset_of(CLOCK_REALTIME);
	/* vt_clock_of_deadline() needs dates that differ. */
	if (date < NS * 86400 * 365)
		fail("LEEWARD_VT_FACTOR", text, "the date of the machine is not set");
	middle = now + date / 2;
	epochs[CLOCK_MONOTONIC] = epochs[CLOCK_MONOTONIC_COARSE] = epoch;
	epochs[CLOCK_MONOTONIC_RAW] = epoch + offset_of(CLOCK_MONOTONIC_RAW);
	epochs[CLOCK_REALTIME] = epochs[CLOCK_REALTIME_COARSE] = epochs[CLOCK_REALTIME_ALARM] = epoch + date;
	epochs[CLOCK_BOOTTIME] = epochs[CLOCK_BOOTTIME_ALARM] = epoch + offset_of(CLOCK_BOOTTIME);
	epochs[CLOCK_TAI] = epoch + offset_of(CLOCK_TAI);
	started = true;
}

__attribute__((constructor(101))) static void load(void)
{
	vt_start();
}

/* Divides by the factor, toward zero. */
static int64_t divide(int64_t ns)
{
	if (ns < INT64_MAX / UNIT && ns > INT64_MIN / UNIT)
		return ns * UNIT / factor;
	return (int64_t)((__int128)ns * UNIT / factor);
}

/* Multiplies by the factor, upward. */
static int64_t multiply(int64_t ns)
{
	__int128 wide = (__int128)ns * factor;
	wide = wide > 0 ? (wide + UNIT - 1) / UNIT : wide / UNIT;
	return wide > INT64_MAX ? INT64_MAX : wide < INT64_MIN ? INT64_MIN : (int64_t)wide;
}

/* Clocks of CPU time of other processes and threads have negative numbers, and so have devices (their low bits are 3,
 * see clock_getcpuclockid(3) and clock_gettime(2)). */
static bool is_cpu_clock(clockid_t clock)
{
	return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || (clock < 0 && (clock & 3) != 3);
}

int64_t vt_to_virtual(clockid_t clock, int64_t real)
{
	vt_start();
	if (is_cpu_clock(clock))
		return divide(real);
	if (clock < 0 || clock >= CLOCKS || !epochs[clock])
		return real;
	return epochs[clock] + divide(real - epochs[clock]);
}

int64_t vt_to_real(clockid_t clock, int64_t virtual)
{
	vt_start();
	if (is_cpu_clock(clock))
		return multiply(virtual);
	if (clock < 0 || clock >= CLOCKS || !epochs[clock])
		return virtual;
	__int128 real = (__int128)epochs[clock] + multiply(virtual - epochs[clock]);
	/* A deadline before the start of the clock is over; the kernel rejects negative ones. */
	return real > INT64_MAX ? INT64_MAX : real < 0 ? 0 : (int64_t)real;
}

int64_t vt_stretch(int64_t virtual)
{
	vt_start();
	return virtual > 0 ? multiply(virtual) : virtual;
}

int64_t vt_shrink(int64_t real)
{
	vt_start();
	int64_t virtual = divide(real);
	return real > 0 && virtual == 0 ? 1 : virtual;
}

uint64_t vt_rate_to_virtual(uint64_t real)
{
	vt_start();
	unsigned __int128 wide = (unsigned __int128)real * (uint64_t)factor / UNIT;
	return wide > UINT64_MAX ? UINT64_MAX : (uint64_t)wide;
}

uint64_t vt_rate_to_real(uint64_t virtual)
{
	vt_start();
	return (uint64_t)((unsigned __int128)virtual * UNIT / (uint64_t)factor);
}

clockid_t vt_clock_of_deadline(int64_t deadline)
{
	vt_start();
	return deadline < middle ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static bool is_valid(const struct timespec *t)
{
	return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < NS;
}

const struct timespec *vt_stretched(const struct timespec *from, struct timespec *into)
{
	if (!from || !is_valid(from))
		return from;
	*into = vt_timespec(vt_stretch(vt_ns(from)));
	return into;
}

const struct timespec *vt_deadline(clockid_t clock, const struct timespec *from, struct timespec *into)
{
	if (!from || !is_valid(from))
		return from;
	*into = vt_timespec(vt_to_real(clock, vt_ns(from)));
	return into;
}

void vt_shrink_timespec(struct timespec *time)
{
	*time = vt_timespec(vt_shrink(vt_ns(time)));
}

/* A timeval rounds up on the way back for the reason of vt_shrink(). */
void vt_shrink_timeval(struct timeval *time)
{
	int64_t real = time->tv_sec * NS + time->tv_usec * 1000;
	int64_t us = vt_shrink(real) / 1000;
	if (real > 0 && us == 0)
		us = 1;
	*time = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

void vt_stretch_timeval(struct timeval *time)
{
	if (time->tv_sec < 0 || time->tv_usec < 0 || time->tv_usec >= 1000000)
		return;
	struct timespec virtual = {.tv_sec = time->tv_sec, .tv_nsec = time->tv_usec * 1000};
	int64_t real = vt_stretch(vt_ns(&virtual));
	int64_t us = real / 1000 + (real % 1000 != 0);
	*time = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}
