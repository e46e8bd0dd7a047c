/* Calls that begin, copy and end descriptors. */
#define _GNU_SOURCE
#include "adu.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

EXPORT int close(int fd)
{
	ADU_REAL(close);
	if (!adu_is_on() || !adu_owns_memory())
		return real_close(fd);
	if (adu_is_own(fd)) {
		errno = EBADF;
		return -1;
	}
	/* Before the call: another thread can have the number at once after it. */
	adu_forget(fd);
	return real_close(fd);
}

/* The C library closes the descriptor without a call of close(). */
EXPORT int fclose(FILE *file)
{
	ADU_REAL(fclose);
	if (adu_is_on() && file && adu_owns_memory())
		adu_forget(fileno(file));
	return real_fclose(file);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	/* Not in C libraries before glibc 2.34. A program that calls it has it. */
	static int (*real)(unsigned, unsigned, int);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "close_range");
	if (!real) {
		errno = ENOSYS;
		return -1;
	}
	/* Flags mark descriptors for a later end, or are for another table of descriptors. */
	if (!adu_is_on() || flags || !adu_owns_memory() || first > last)
		return real(first, last, flags);
	adu_forget_range(first, last);
	int result = real(first, last, flags);
	/* The call may have closed the library's own descriptor. */
	adu_make_way(first, last);
	return result;
}

EXPORT void closefrom(int first)
{
	close_range(first < 0 ? 0 : (unsigned)first, UINT_MAX, 0);
}

EXPORT int shutdown(int fd, int how)
{
	ADU_REAL(shutdown);
	int result = real_shutdown(fd, how);
	struct connection *connection = how == SHUT_RD ? NULL : adu_find(fd);
	if (result == 0 && connection)
		adu_closed(connection);
	return result;
}

/* Numbers of new sockets can be those of descriptors that ended without a call. */

static int fresh(int fd)
{
	if (fd >= 0 && adu_is_on() && adu_owns_memory())
		adu_forget(fd);
	return fd;
}

EXPORT int socket(int domain, int type, int protocol)
{
	ADU_REAL(socket);
	return fresh(real_socket(domain, type, protocol));
}

EXPORT int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	ADU_REAL(accept);
	return fresh(real_accept(fd, address, length));
}

EXPORT int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict length, int flags)
{
	ADU_REAL(accept4);
	return fresh(real_accept4(fd, address, length, flags));
}

/* Copies. */

static int copied(int from, int to)
{
	if (to >= 0 && from != to && adu_is_on() && adu_owns_memory()) {
		adu_forget(to);
		adu_copied(from, to);
	}
	return to;
}

EXPORT int dup(int fd)
{
	ADU_REAL(dup);
	return copied(fd, real_dup(fd));
}

EXPORT int dup2(int from, int to)
{
	ADU_REAL(dup2);
	adu_make_way((unsigned)to, (unsigned)to);
	return copied(from, real_dup2(from, to));
}

EXPORT int dup3(int from, int to, int flags)
{
	ADU_REAL(dup3);
	adu_make_way((unsigned)to, (unsigned)to);
	return copied(from, real_dup3(from, to, flags));
}

static int control(int (*real)(int, int, ...), int fd, int command, void *argument)
{
	int result = real(fd, command, argument);
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, result) : result;
}

#define CONTROL(name)                                                                                                  \
	EXPORT int name(int fd, int command, ...)                                                                      \
	{                                                                                                              \
		ADU_REAL(name);                                                                                        \
		va_list arguments;                                                                                     \
		va_start(arguments, command);                                                                          \
		void *argument = va_arg(arguments, void *);                                                            \
		va_end(arguments);                                                                                     \
		return control(real_##name, fd, command, argument);                                                    \
	}

CONTROL(fcntl)
CONTROL(fcntl64)

/* The end of a process closes all its descriptors. */

static void end_all(void)
{
	if (adu_is_on() && adu_owns_memory())
		adu_forget_range(0, UINT_MAX);
}

__attribute__((destructor)) static void unload(void)
{
	end_all();
}

EXPORT void _exit(int status)
{
	static void (*real)(int) __attribute__((noreturn));
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "_exit");
	end_all();
	real(status);
}

EXPORT void _Exit(int status)
{
	_exit(status);
}
