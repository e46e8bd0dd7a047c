/* The socket to the switch. */
#define _GNU_SOURCE
#include "adu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Programs close low descriptors, and count on their numbers. */
#define LEAST 900

static bool on;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int own = -1;

static int open_own(int least)
{
	ADU_REAL(close);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, least);
	if (high < 0)
		return fd;
	real_close(fd);
	return high;
}

__attribute__((constructor)) static void load(void)
{
	const char *path = getenv("LEEWARD_ADU_SOCKET");
	if (!path)
		return;
	/* Without its demand a program would take part in an experiment that it falsifies. */
	if (!*path || strlen(path) >= sizeof address.sun_path) {
		fprintf(stderr, "libleeward_adu: LEEWARD_ADU_SOCKET=%.120s: invalid: a path of 1 to %zu bytes\n", path,
			sizeof address.sun_path - 1);
		_exit(127);
	}
	strcpy(address.sun_path, path);
	own = open_own(LEAST);
	on = own >= 0;
}

bool adu_is_on(void)
{
	return on;
}

bool adu_is_own(int fd)
{
	return on && fd == own;
}

void adu_make_way(unsigned first, unsigned last)
{
	if (on && (unsigned)own >= first && (unsigned)own <= last && adu_owns_memory())
		own = open_own(LEAST);
}

void adu_report(const struct adu_record *record)
{
	ADU_REAL(sendto);
	int error = errno;
	real_sendto(own, record, sizeof *record, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof address);
	errno = error;
}
