/* Checks that values which programs read are virtual: clocks, CPU time, rests of sleeps and timeouts, options of
 * sockets and times of packets. Prints a line for each check: its name, and 1 if it holds. The environment sets the
 * factor. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <time.h>
#include <unistd.h>

static double factor;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_sleep)(const struct timespec *, struct timespec *);

static void check(const char *name, int holds)
{
	printf("%s %d\n", name, holds);
	fflush(stdout);
}

static double seconds(int (*gettime)(clockid_t, struct timespec *), clockid_t clock)
{
	struct timespec t;
	return gettime(clock, &t) ? -1 : (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool near(double value, double expected, double error)
{
	return value >= expected - error && value <= expected + error;
}

/* Sleeps for real milliseconds. */
static void pass(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	real_sleep(&t, NULL);
}

static void check_clocks(void)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
					   CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI};
	enum { COUNT = sizeof clocks / sizeof *clocks };
	double virtual[COUNT], real[COUNT];
	for (int i = 0; i < COUNT; i++)
		virtual[i] = seconds(clock_gettime, clocks[i]), real[i] = seconds(real_gettime, clocks[i]);
	pass(200);
	for (int i = 0; i < COUNT; i++) {
		double v = seconds(clock_gettime, clocks[i]) - virtual[i], r = seconds(real_gettime, clocks[i]) - real[i];
		char name[32];
		snprintf(name, sizeof name, "clock_%d", clocks[i]);
		check(name, r > 0.19 && near(v, r / factor, 0.002));
	}
	struct timeval tv;
	struct timespec raw;
	gettimeofday(&tv, NULL);
	check("gettimeofday",
	      near((double)tv.tv_sec + (double)tv.tv_usec / 1e6, seconds(clock_gettime, CLOCK_REALTIME), 0.001));
	check("time", near((double)time(NULL), seconds(clock_gettime, CLOCK_REALTIME), 1));
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &raw);
	check("syscall_clock_gettime",
	      near((double)raw.tv_sec + (double)raw.tv_nsec / 1e9, seconds(clock_gettime, CLOCK_MONOTONIC), 0.001));
}

static void check_cpu_time(void)
{
	while (seconds(real_gettime, CLOCK_PROCESS_CPUTIME_ID) < 0.2) {
	}
	struct rusage usage;
	struct tms used;
	double real = seconds(real_gettime, CLOCK_PROCESS_CPUTIME_ID);
	check("cpu_clock", near(seconds(clock_gettime, CLOCK_PROCESS_CPUTIME_ID), real / factor, 0.005));
	check("clock", near((double)clock() / CLOCKS_PER_SEC, real / factor, 0.005));
	getrusage(RUSAGE_SELF, &usage);
	double sum = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	check("getrusage", near(sum, real / factor, 0.01));
	times(&used);
	check("times", near((double)(used.tms_utime + used.tms_stime) / (double)sysconf(_SC_CLK_TCK), real / factor, 0.03));
}

/* CPU time of a child that used 0.2 real seconds of it. */
static void check_child(const char *name, bool any)
{
	pid_t child = fork();
	if (child == 0) {
		while (seconds(real_gettime, CLOCK_PROCESS_CPUTIME_ID) < 0.2) {
		}
		_exit(0);
	}
	struct rusage usage;
	int status;
	pid_t ended = any ? wait3(&status, 0, &usage) : wait4(child, &status, 0, &usage);
	double sum = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	check(name, ended == child && near(sum, 0.2 / factor, 0.01));
}

static void ignore(int number)
{
	(void)number;
}

/* A real timer of 100 ms interrupts sleeps of 1 virtual second. */
static void interrupt_soon(void)
{
	pid_t self = getpid();
	if (fork() == 0) {
		pass(100);
		kill(self, SIGUSR1);
		_exit(0);
	}
}

static void check_rests(void)
{
	struct sigaction action = {.sa_handler = ignore};
	sigaction(SIGUSR1, &action, NULL);
	double expected = 1 - 0.1 / factor;
	struct timespec request = {.tv_sec = 1}, left;
	interrupt_soon();
	int result = nanosleep(&request, &left);
	check("nanosleep_rest", result == -1 && near((double)left.tv_sec + (double)left.tv_nsec / 1e9, expected, 0.01));
	interrupt_soon();
	result = clock_nanosleep(CLOCK_MONOTONIC, 0, &request, &left);
	check("clock_nanosleep_rest",
	      result == EINTR && near((double)left.tv_sec + (double)left.tv_nsec / 1e9, expected, 0.01));
	interrupt_soon();
	check("sleep_rest", sleep(2) == 2);

	int ends[2];
	struct timeval timeout = {.tv_sec = 1};
	fd_set set;
	if (pipe(ends))
		return;
	if (fork() == 0) {
		pass(100);
		_exit(write(ends[1], "x", 1) != 1);
	}
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	result = select(ends[0] + 1, &set, NULL, NULL, &timeout);
	check("select_rest", result == 1 && near((double)timeout.tv_sec + (double)timeout.tv_usec / 1e6, expected, 0.01));

	alarm(100);
	pass(100);
	check("alarm_rest", alarm(0) == 100);
}

static void check_option(const char *name, int fd, int level, int option, int value, int expected)
{
	int back = -1, raw = -1;
	socklen_t length = sizeof back;
	int (*real_getsockopt)(int, int, int, void *, socklen_t *);
	*(void **)&real_getsockopt = dlsym(dlopen("libc.so.6", RTLD_NOW), "getsockopt");
	bool set = setsockopt(fd, level, option, &value, sizeof value) == 0 &&
		   getsockopt(fd, level, option, &back, &length) == 0 && real_getsockopt(fd, level, option, &raw, &length) == 0;
	check(name, set && back == value && raw == expected);
}

static void check_options(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	check_option("user_timeout", fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 3000, (int)(3000 * factor));
	check_option("keepidle", fd, IPPROTO_TCP, TCP_KEEPIDLE, 60, (int)(60 * factor));
	check_option("keepintvl", fd, IPPROTO_TCP, TCP_KEEPINTVL, 10, (int)(10 * factor));
	check_option("keepcnt", fd, IPPROTO_TCP, TCP_KEEPCNT, 4, 4);
	check_option("nodelay", fd, IPPROTO_TCP, TCP_NODELAY, 1, 1);
	check_option("pacing_rate", fd, SOL_SOCKET, SO_MAX_PACING_RATE, 1000000, (int)(1000000 / factor));
	check_option("no_pacing_rate", fd, SOL_SOCKET, SO_MAX_PACING_RATE, -1, -1);
	close(fd);
}

static void check_info(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	bind(listener, (struct sockaddr *)&address, length);
	listen(listener, 1);
	getsockname(listener, (struct sockaddr *)&address, &length);
	if (connect(client, (struct sockaddr *)&address, length) || send(client, "x", 1, 0) != 1)
		return;
	pass(400);
	struct tcp_info info;
	length = sizeof info;
	int result = getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &length);
	check("tcp_info_last_data_sent", result == 0 && near(info.tcpi_last_data_sent, 400 / factor, 4));
	check("tcp_info_rto", result == 0 && info.tcpi_rto >= 190000 / factor && info.tcpi_rto < 400000 / factor);
}

static ssize_t receive(int fd, bool many, char *control, size_t room, struct msghdr *message)
{
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct mmsghdr one = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room}};
	ssize_t result = many ? recvmmsg(fd, &one, 1, 0, NULL) : recvmsg(fd, &one.msg_hdr, 0);
	*message = one.msg_hdr;
	return result;
}

static void check_stamp(const char *name, int option, int value, bool many, bool micro)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bind(fd, (struct sockaddr *)&address, length);
	getsockname(fd, (struct sockaddr *)&address, &length);
	setsockopt(fd, SOL_SOCKET, option, &value, sizeof value);
	/* The kernel begins to stamp packets a little after the first socket has asked for it. */
	pass(50);
	double before = seconds(clock_gettime, CLOCK_REALTIME), stamp = 0;
	sendto(fd, "x", 1, 0, (struct sockaddr *)&address, length);
	pass(100);
	double after = seconds(clock_gettime, CLOCK_REALTIME);
	char control[256];
	struct msghdr message;
	if (receive(fd, many, control, sizeof control, &message) == 1)
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
			long parts[2];
			memcpy(parts, CMSG_DATA(c), sizeof parts);
			if (c->cmsg_level == SOL_SOCKET)
				stamp = (double)parts[0] + (double)parts[1] / (micro ? 1e6 : 1e9);
		}
	check(name, stamp >= before - 1e-5 && stamp < after - 0.05 / factor);
	close(fd);
}

int main(void)
{
	factor = atof(getenv("LEEWARD_VT_FACTOR"));
	void *library = dlopen("libc.so.6", RTLD_NOW);
	*(void **)&real_gettime = dlsym(library, "clock_gettime");
	*(void **)&real_sleep = dlsym(library, "nanosleep");
	check_clocks();
	check_cpu_time();
	check_child("wait3", true);
	check_child("wait4", false);
	check_rests();
	check_options();
	check_info();
	check_stamp("timestamp", SO_TIMESTAMP, 1, false, true);
	check_stamp("timestampns", SO_TIMESTAMPNS, 1, false, false);
	check_stamp("timestamping", SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, false, false);
	check_stamp("timestampns_recvmmsg", SO_TIMESTAMPNS, 1, true, false);
	return 0;
}
