/* Waits WAIT milliseconds of virtual time by each call that can wait, and prints a line for each: its name, the
 * virtual and the real milliseconds that passed, and 1 if the result was the expected one. Arguments: names of calls;
 * none: all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define WAIT 10
#define WAIT_NS (WAIT * 1000000L)

static int (*real_gettime)(clockid_t, struct timespec *);
static struct timespec duration = {.tv_nsec = WAIT_NS};
static int sockets[2];

static struct timespec after(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	t.tv_nsec += WAIT_NS;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static double ms(int (*gettime)(clockid_t, struct timespec *))
{
	struct timespec t;
	gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static bool w_nanosleep(void) { return nanosleep(&duration, NULL) == 0; }
static bool w_clock_nanosleep(void) { return clock_nanosleep(CLOCK_MONOTONIC, 0, &duration, NULL) == 0; }
static bool w_clock_nanosleep_abs(void)
{
	struct timespec t = after(CLOCK_MONOTONIC);
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == 0;
}
static bool w_clock_nanosleep_date(void)
{
	struct timespec t = after(CLOCK_REALTIME);
	return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0;
}
static bool w_usleep(void) { return usleep(WAIT * 1000) == 0; }
static bool w_thrd_sleep(void) { return thrd_sleep(&duration, NULL) == 0; }
static bool w_select(void)
{
	struct timeval t = {.tv_usec = WAIT * 1000};
	return select(0, NULL, NULL, NULL, &t) == 0 && t.tv_usec == 0;
}
static bool w_pselect(void) { return pselect(0, NULL, NULL, NULL, &duration, NULL) == 0; }
static bool w_poll(void) { return poll(NULL, 0, WAIT) == 0; }
/* Programs call it when they are compiled with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t size);
static bool w_poll_chk(void)
{
	struct pollfd fd = {.fd = -1};
	return __poll_chk(&fd, 1, WAIT, sizeof fd) == 0;
}
static bool w_ppoll(void) { return ppoll(NULL, 0, &duration, NULL) == 0; }
static bool w_epoll_wait(void)
{
	struct epoll_event event;
	int fd = epoll_create1(0), result = epoll_wait(fd, &event, 1, WAIT);
	close(fd);
	return result == 0;
}
static bool w_epoll_pwait(void)
{
	struct epoll_event event;
	int fd = epoll_create1(0), result = epoll_pwait(fd, &event, 1, WAIT, NULL);
	close(fd);
	return result == 0;
}
static bool w_epoll_pwait2(void)
{
	struct epoll_event event;
	int fd = epoll_create1(0), result = epoll_pwait2(fd, &event, 1, &duration, NULL);
	close(fd);
	return result == 0;
}
static bool w_futex_wait(void)
{
	int word = 0;
	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &duration, NULL, 0) == -1 && errno == ETIMEDOUT;
}
static bool w_futex_bitset(void)
{
	int word = 0;
	struct timespec t = after(CLOCK_MONOTONIC);
	return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL, FUTEX_BITSET_MATCH_ANY) == -1 &&
	       errno == ETIMEDOUT;
}
static bool w_futex_bitset_date(void)
{
	int word = 0;
	struct timespec t = after(CLOCK_REALTIME);
	return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &t, NULL,
		       FUTEX_BITSET_MATCH_ANY) == -1 &&
	       errno == ETIMEDOUT;
}
static bool w_raw_nanosleep(void) { return syscall(SYS_nanosleep, &duration, NULL) == 0; }
static bool w_raw_clock_nanosleep(void)
{
	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &duration, NULL) == 0;
}
static bool w_sem_timedwait(void)
{
	sem_t sem;
	sem_init(&sem, 0, 0);
	struct timespec t = after(CLOCK_REALTIME);
	return sem_timedwait(&sem, &t) == -1 && errno == ETIMEDOUT;
}
static bool w_sem_clockwait(void)
{
	sem_t sem;
	sem_init(&sem, 0, 0);
	struct timespec t = after(CLOCK_MONOTONIC);
	return sem_clockwait(&sem, CLOCK_MONOTONIC, &t) == -1 && errno == ETIMEDOUT;
}
static bool wait_condition(clockid_t clock, bool explicit)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition;
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	if (!explicit)
		pthread_condattr_setclock(&attributes, clock);
	pthread_cond_init(&condition, &attributes);
	struct timespec t = after(clock);
	pthread_mutex_lock(&mutex);
	return (explicit ? pthread_cond_clockwait(&condition, &mutex, clock, &t)
			 : pthread_cond_timedwait(&condition, &mutex, &t)) == ETIMEDOUT;
}
static bool w_cond_date(void) { return wait_condition(CLOCK_REALTIME, false); }
static bool w_cond_monotonic(void) { return wait_condition(CLOCK_MONOTONIC, false); }
static bool w_cond_clockwait(void) { return wait_condition(CLOCK_MONOTONIC, true); }
static bool w_cnd_timedwait(void)
{
	mtx_t mutex;
	cnd_t condition;
	mtx_init(&mutex, mtx_plain);
	cnd_init(&condition);
	mtx_lock(&mutex);
	struct timespec t = after(CLOCK_REALTIME);
	return cnd_timedwait(&condition, &mutex, &t) == thrd_timedout;
}
static bool w_mtx_timedlock(void)
{
	mtx_t mutex;
	mtx_init(&mutex, mtx_timed);
	mtx_lock(&mutex);
	struct timespec t = after(CLOCK_REALTIME);
	return mtx_timedlock(&mutex, &t) == thrd_timedout;
}
static bool w_mutex_timedlock(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&mutex);
	struct timespec t = after(CLOCK_REALTIME);
	return pthread_mutex_timedlock(&mutex, &t) == ETIMEDOUT;
}
static bool w_mutex_clocklock(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&mutex);
	struct timespec t = after(CLOCK_MONOTONIC);
	return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &t) == ETIMEDOUT;
}
static bool w_rwlock(void)
{
	static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_rwlock_rdlock(&lock);
	struct timespec t = after(CLOCK_REALTIME);
	return pthread_rwlock_timedwrlock(&lock, &t) == ETIMEDOUT;
}
static void *wait_long(void *unused)
{
	(void)unused;
	pause();
	return NULL;
}
static bool w_timedjoin(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, wait_long, NULL);
	struct timespec t = after(CLOCK_REALTIME);
	return pthread_timedjoin_np(thread, NULL, &t) == ETIMEDOUT;
}
static bool w_clockjoin(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, wait_long, NULL);
	struct timespec t = after(CLOCK_MONOTONIC);
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &t) == ETIMEDOUT;
}
#define MESSAGE 16
/* A queue for one message. */
static mqd_t queue(void)
{
	char name[32];
	snprintf(name, sizeof name, "/leeward-%d", getpid());
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = MESSAGE};
	mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
	mq_unlink(name);
	return queue;
}
static bool w_mq_timedreceive(void)
{
	char message[MESSAGE];
	struct timespec t = after(CLOCK_REALTIME);
	return mq_timedreceive(queue(), message, sizeof message, NULL, &t) == -1 && errno == ETIMEDOUT;
}
static bool w_mq_timedsend(void)
{
	mqd_t full = queue();
	mq_send(full, "x", 1, 0);
	struct timespec t = after(CLOCK_REALTIME);
	return mq_timedsend(full, "x", 1, 0, &t) == -1 && errno == ETIMEDOUT;
}
static bool w_sigtimedwait(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigtimedwait(&set, NULL, &duration) == -1 && errno == EAGAIN;
}
/* The first expiry comes after WAIT, and the timer reads back less than that. */
static bool timer_descriptor(clockid_t clock, bool absolute)
{
	int fd = timerfd_create(clock, 0);
	struct itimerspec value = {.it_value = absolute ? after(clock) : duration}, left;
	uint64_t count = 0;
	bool right = timerfd_settime(fd, absolute ? TFD_TIMER_ABSTIME : 0, &value, NULL) == 0 &&
		     timerfd_gettime(fd, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_nsec <= WAIT_NS &&
		     left.it_value.tv_nsec > WAIT_NS / 2 && read(fd, &count, sizeof count) == sizeof count;
	close(fd);
	return right && count == 1;
}
static bool w_timerfd(void) { return timer_descriptor(CLOCK_MONOTONIC, false); }
static bool w_timerfd_abs(void) { return timer_descriptor(CLOCK_MONOTONIC, true); }
static bool w_timerfd_boot(void) { return timer_descriptor(CLOCK_BOOTTIME, true); }
static bool w_timerfd_date(void) { return timer_descriptor(CLOCK_REALTIME, true); }
static bool wait_signal(int number)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	return sigwaitinfo(&set, NULL) == number;
}
static bool w_setitimer(void)
{
	struct itimerval value = {.it_value.tv_usec = WAIT * 1000}, left;
	return setitimer(ITIMER_REAL, &value, NULL) == 0 && getitimer(ITIMER_REAL, &left) == 0 &&
	       left.it_value.tv_usec <= WAIT * 1000 && left.it_value.tv_usec > WAIT * 500 && wait_signal(SIGALRM);
}
static bool w_ualarm(void) { return ualarm(WAIT * 1000, 0) == 0 && wait_signal(SIGALRM); }
static bool posix_timer(bool absolute)
{
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	struct itimerspec value = {.it_value = absolute ? after(CLOCK_MONOTONIC) : duration}, left;
	return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
	       timer_settime(timer, absolute ? TIMER_ABSTIME : 0, &value, NULL) == 0 &&
	       timer_gettime(timer, &left) == 0 && left.it_value.tv_nsec <= WAIT_NS &&
	       left.it_value.tv_nsec > WAIT_NS / 2 && wait_signal(SIGUSR2) && timer_delete(timer) == 0;
}
static bool w_timer_settime(void) { return posix_timer(false); }
static bool w_timer_settime_abs(void) { return posix_timer(true); }
static bool w_rcvtimeo(void)
{
	struct timeval t = {.tv_usec = WAIT * 1000}, read_back;
	socklen_t length = sizeof read_back;
	char byte;
	return setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0 &&
	       getsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &read_back, &length) == 0 &&
	       read_back.tv_sec == 0 && read_back.tv_usec == WAIT * 1000 && recv(sockets[0], &byte, 1, 0) == -1 &&
	       errno == EAGAIN;
}
static bool w_sndtimeo(void)
{
	struct timeval t = {.tv_usec = WAIT * 1000};
	char bytes[4096] = {0};
	while (send(sockets[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
	}
	return setsockopt(sockets[1], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) == 0 &&
	       send(sockets[1], bytes, sizeof bytes, 0) == -1 && errno == EAGAIN;
}
/* The kernel looks at this timeout only after a datagram: the second one arrives late, at once. */
static bool w_recvmmsg(void)
{
	int udp = socket(AF_INET, SOCK_DGRAM, 0), i;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	bind(udp, (struct sockaddr *)&address, sizeof address);
	getsockname(udp, (struct sockaddr *)&address, &length);
	pid_t child = fork();
	if (child == 0) {
		for (i = 0; i < 40; i++) {
			sendto(udp, "x", 1, 0, (struct sockaddr *)&address, sizeof address);
			usleep(1000 * WAIT / 20);
		}
		_exit(0);
	}
	struct mmsghdr messages[40] = {0};
	struct timespec left = duration;
	int count = recvmmsg(udp, messages, 40, 0, &left);
	kill(child, SIGKILL);
	return count > 1 && count < 30 && left.tv_sec == 0 && left.tv_nsec == 0;
}

#define CALL(name) {#name, w_##name}
static const struct {
	const char *name;
	bool (*wait)(void);
} calls[] = {
	CALL(nanosleep),      CALL(clock_nanosleep),  CALL(clock_nanosleep_abs),   CALL(clock_nanosleep_date),
	CALL(usleep),	      CALL(thrd_sleep),	      CALL(select),		   CALL(pselect),
	CALL(poll),	      CALL(ppoll),	      CALL(epoll_wait),		   CALL(epoll_pwait),
	CALL(epoll_pwait2),   CALL(futex_wait),	      CALL(futex_bitset),	   CALL(futex_bitset_date),
	CALL(raw_nanosleep),  CALL(raw_clock_nanosleep), CALL(sem_timedwait),	   CALL(sem_clockwait),
	CALL(cond_date),      CALL(cond_monotonic),   CALL(cond_clockwait),	   CALL(mutex_timedlock),
	CALL(mutex_clocklock), CALL(rwlock),	      CALL(timedjoin),		   CALL(mq_timedreceive),
	CALL(sigtimedwait),   CALL(timerfd),	      CALL(timerfd_abs),	   CALL(timerfd_boot),
	CALL(timerfd_date),   CALL(setitimer),	      CALL(ualarm),		   CALL(timer_settime),
	CALL(timer_settime_abs), CALL(rcvtimeo),      CALL(sndtimeo),		   CALL(recvmmsg),
	CALL(poll_chk),	      CALL(cnd_timedwait),    CALL(mtx_timedlock),	   CALL(clockjoin),
	CALL(mq_timedsend),
};

int main(int count, char **names)
{
	/* The wrappers stand before the C library, not inside of it. */
	*(void **)&real_gettime = dlsym(dlopen("libc.so.6", RTLD_NOW), "clock_gettime");
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		bool asked = count == 1;
		for (int k = 1; k < count; k++)
			asked |= strcmp(names[k], calls[i].name) == 0;
		if (!asked)
			continue;
		double virtual = ms(clock_gettime), real = ms(real_gettime);
		bool right = calls[i].wait();
		virtual = ms(clock_gettime) - virtual, real = ms(real_gettime) - real;
		printf("%s %.3f %.3f %d\n", calls[i].name, virtual, real, right);
		fflush(stdout);
	}
	return 0;
}
