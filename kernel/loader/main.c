/* Loads the BPF programs of a lab and keeps them attached while it runs: until its standard input ends, or a signal.
 * All attachments are links that this process holds, so that they go with it, also after SIGKILL. */
#define _GNU_SOURCE
#include "loader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* Parts that run. */
static struct bpf_object *timers, *retcp, *tdtcp;
static struct demand *demand;

static void start_timers(const struct request *request, int cgroup)
{
	timers = open_object(request->objects, "timers.bpf.o", NULL);
	*(int *)constant(timers, "rto_min_us", sizeof(int)) = request->rto_min_us;
	*(int *)constant(timers, "delack_max_us", sizeof(int)) = request->delack_max_us;
	*(int *)constant(timers, "initial_window", sizeof(int)) = request->initial_window;
	load_object(timers, "timers");
	attach_to_cgroup(timers, "timers", cgroup);
}

static void start_retcp(const struct request *request, int cgroup)
{
	retcp = open_object(request->objects, "retcp.bpf.o", request->retcp);
	*(struct factor *)constant(retcp, "alpha", sizeof(struct factor)) = request->alpha;
	*(struct factor *)constant(retcp, "beta", sizeof(struct factor)) = request->beta;
	allow_links(retcp, "retcp");
	load_object(retcp, "retcp");
	attach_control(retcp, "retcp", request->retcp);
	attach_to_cgroup(retcp, "retcp", cgroup);
}

static void start_tdtcp(const struct request *request, int cgroup)
{
	tdtcp = open_object(request->objects, "tdtcp.bpf.o", request->tdtcp);
	allow_links(tdtcp, "tdtcp");
	load_object(tdtcp, "tdtcp");
	attach_control(tdtcp, "tdtcp", request->tdtcp);
	attach_to_cgroup(tdtcp, "tdtcp", cgroup);
}

static void start_demand(const struct request *request, int cgroup)
{
	struct bpf_object *object = open_object(request->objects, "adu.bpf.o", NULL);
	load_object(object, "adu");
	demand = open_demand(object, request->adu);
	attach_to_cgroup(object, "adu", cgroup);
}

/* Prints a line if a counter of failures is no longer 0: the experiment is then a different one. */
static void check_failures(struct bpf_object *object, const char *name, bool *reported, const char *text)
{
	if (!object || *reported || counter(object, name) == 0)
		return;
	*reported = true;
	fprintf(stderr, "leeward-bpf: %s\n", text);
}

static void check(void)
{
	static bool rejected, retcp_mended, tdtcp_mended;
	check_failures(timers, "rejected", &rejected,
		       "timers: the kernel has rejected a value; the timers of that connection are the kernel's");
	check_failures(retcp, "mended", &retcp_mended, "retcp: the kernel has skipped a program; its work was made up for");
	check_failures(tdtcp, "mended", &tdtcp_mended, "tdtcp: the kernel has skipped a program; its work was made up for");
}

static void print_control(const char *part, struct bpf_object *object)
{
	if (object)
		printf("%s ups=%llu downs=%llu mended=%llu\n", part, (unsigned long long)counter(object, "ups"),
		       (unsigned long long)counter(object, "downs"), (unsigned long long)counter(object, "mended"));
}

static void print_counters(void)
{
	if (timers)
		printf("timers connections=%llu rejected=%llu\n", (unsigned long long)counter(timers, "connections"),
		       (unsigned long long)counter(timers, "rejected"));
	print_control("retcp", retcp);
	print_control("tdtcp", tdtcp);
	fflush(stdout);
}

static void wait_for_end(int signals, long every_us)
{
	struct pollfd inputs[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	struct timespec interval = {.tv_sec = 1};
	if (demand)
		interval = (struct timespec){.tv_sec = every_us / 1000000, .tv_nsec = every_us % 1000000 * 1000};
	char bytes[256];
	for (;;) {
		int ready = ppoll(inputs, 2, &interval, NULL);
		if (ready < 0 && errno != EINTR)
			fail(errno, "poll");
		if (demand)
			send_demand(demand);
		check();
		if (ready <= 0)
			continue;
		if (inputs[1].revents)
			return;
		if (inputs[0].revents && read(STDIN_FILENO, bytes, sizeof bytes) <= 0)
			return;
	}
}

int main(int count, char **arguments)
{
	struct request request = parse(count, arguments);
	int cgroup = open_cgroup(request.cgroup);

	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	int signals = signalfd(-1, &ends, SFD_CLOEXEC);
	if (signals < 0)
		fail(errno, "signalfd");

	listen_to_libbpf();
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		fail(errno, "no BTF of the kernel (CONFIG_DEBUG_INFO_BTF): /sys/kernel/btf/vmlinux");
	if (request.timers)
		start_timers(&request, cgroup);
	if (request.retcp)
		start_retcp(&request, cgroup);
	if (request.tdtcp)
		start_tdtcp(&request, cgroup);
	if (request.adu)
		start_demand(&request, cgroup);
	puts("ready");
	fflush(stdout);

	wait_for_end(signals, request.every_us);
	check();
	print_counters();
	return 0;
}
