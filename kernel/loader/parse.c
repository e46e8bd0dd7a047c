/* The command line of leeward-bpf. */
#define _GNU_SOURCE
#include "loader.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: leeward-bpf --cgroup DIR [--timers rto_min_us=N,delack_max_us=N[,initial_window=N]]\n"
	"                   [--retcp NAME[,alpha=2][,beta=0.5]] [--tdtcp NAME] [--adu SOCKET[,every_us=N]]\n"
	"                   [--objects DIR]\n"
	"Loads BPF programs for the processes of a cgroup, prints \"ready\", and runs until its standard input ends.\n";

/* Congestion controls have names of at most 15 bytes. */
#define NAME_MOST 15
/* The longest timers that the kernel accepts from BPF. A longer minimal RTO is possible by the route (ip route ...
 * rto_min) or, from Linux 6.11 on, by the setting net.ipv4.tcp_rto_min_us of the namespace. */
#define TIMER_MOST 200000

static long whole(const char *option, const char *key, const char *text, long least, long most)
{
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < least || value > most)
		fail(0, "%s: %s=%s: must be an integer from %ld to %ld", option, key, text, least, most);
	return value;
}

static struct factor fraction(const char *option, const char *key, const char *text)
{
	struct factor factor = {0, 1};
	bool point = false, digits = false;
	for (const char *c = text; *c; c++) {
		if (*c == '.' && !point) {
			point = true;
			continue;
		}
		if (*c < '0' || *c > '9' || factor.numerator > 10000000 || factor.denominator > 100000)
			fail(0, "%s: %s=%s: must be a decimal number, with at most 5 digits after the point", option, key, text);
		factor.numerator = factor.numerator * 10 + (uint32_t)(*c - '0');
		digits = true;
		if (point)
			factor.denominator *= 10;
	}
	if (!digits)
		fail(0, "%s: %s=%s: must be a decimal number, with at most 5 digits after the point", option, key, text);
	return factor;
}

static const char *control_name(const char *option, const char *name)
{
	size_t length = strlen(name);
	if (length == 0 || length > NAME_MOST || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
							      "0123456789_.") != length)
		fail(0, "%s: %s: a name has 1 to %d letters, digits, '_' and '.'", option, name, NAME_MOST);
	return name;
}

/* Splits `key=value` off a list. Returns false at the end of it. */
static bool next(const char *option, char **list, char **key, char **value)
{
	char *item = strsep(list, ",");
	if (!item)
		return false;
	*key = item;
	*value = strchr(item, '=');
	if (!*value)
		fail(0, "%s: %s: must be KEY=VALUE", option, item);
	*(*value)++ = 0;
	return true;
}

static long timer(const char *key, const char *text)
{
	long value = whole("--timers", key, text, 1, INT_MAX);
	if (value > TIMER_MOST)
		fail(0, "--timers: %s=%s: the kernel accepts at most %d from BPF: use rto_min of the route", key, text,
		     TIMER_MOST);
	return value;
}

static void parse_timers(struct request *request, char *list)
{
	char *key, *value;
	request->timers = true;
	while (next("--timers", &list, &key, &value))
		if (!strcmp(key, "rto_min_us"))
			request->rto_min_us = (int)timer(key, value);
		else if (!strcmp(key, "delack_max_us"))
			request->delack_max_us = (int)timer(key, value);
		else if (!strcmp(key, "initial_window"))
			request->initial_window = (int)whole("--timers", key, value, 1, 10000);
		else
			fail(0, "--timers: unknown key: %s", key);
}

static void parse_retcp(struct request *request, char *list)
{
	char *key, *value;
	request->retcp = control_name("--retcp", strsep(&list, ","));
	while (next("--retcp", &list, &key, &value))
		if (!strcmp(key, "alpha"))
			request->alpha = fraction("--retcp", key, value);
		else if (!strcmp(key, "beta"))
			request->beta = fraction("--retcp", key, value);
		else
			fail(0, "--retcp: unknown key: %s", key);
	if (request->alpha.numerator < request->alpha.denominator)
		fail(0, "--retcp: alpha must be at least 1");
	if (request->beta.numerator > request->beta.denominator)
		fail(0, "--retcp: beta must be at most 1");
}

static void parse_adu(struct request *request, char *list)
{
	char *key, *value;
	request->adu = strsep(&list, ",");
	while (next("--adu", &list, &key, &value))
		if (!strcmp(key, "every_us"))
			request->every_us = whole("--adu", key, value, 10, 60000000);
		else
			fail(0, "--adu: unknown key: %s", key);
}

/* The objects are installed beside the program. */
static const char *own_folder(void)
{
	static char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
	char *slash = length < 0 ? NULL : memrchr(path, '/', (size_t)length);
	if (!slash)
		return ".";
	*slash = 0;
	return path;
}

struct request parse(int count, char **arguments)
{
	static const struct option options[] = {
		{"cgroup", required_argument, NULL, 'c'}, {"timers", required_argument, NULL, 't'},
		{"retcp", required_argument, NULL, 'r'},  {"tdtcp", required_argument, NULL, 'd'},
		{"adu", required_argument, NULL, 'a'},	  {"objects", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},	  {0},
	};
	struct request request = {.alpha = {2, 1}, .beta = {1, 2}, .every_us = 1000};
	for (int c; (c = getopt_long(count, arguments, "h", options, NULL)) != -1;)
		switch (c) {
		case 'c':
			request.cgroup = optarg;
			break;
		case 't':
			parse_timers(&request, optarg);
			break;
		case 'r':
			parse_retcp(&request, optarg);
			break;
		case 'd':
			request.tdtcp = control_name("--tdtcp", optarg);
			break;
		case 'a':
			parse_adu(&request, optarg);
			break;
		case 'o':
			request.objects = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			exit(2);
		}
	if (optind < count)
		fail(0, "unexpected argument: %s", arguments[optind]);
	if (!request.cgroup)
		fail(0, "--cgroup is required");
	if (!request.timers && !request.retcp && !request.tdtcp && !request.adu)
		fail(0, "nothing to load: --timers, --retcp, --tdtcp or --adu is required");
	if (request.retcp && request.tdtcp && !strcmp(request.retcp, request.tdtcp))
		fail(0, "--retcp and --tdtcp have the same name: %s", request.retcp);
	if (!request.objects)
		request.objects = own_folder();
	return request;
}
