/* Calls that write on a connection. Each reports what the application hands over before the call can block, and
 * corrects the sum afterwards if the kernel has accepted less. */
#define _GNU_SOURCE
#include "adu.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Runs a call that hands over a number of bytes. `expected` is evaluated for connections only. */
#define REPORTED(fd, expected, call)                                                                                   \
	do {                                                                                                           \
		struct connection *connection = adu_find(fd);                                                          \
		if (!connection)                                                                                       \
			return call;                                                                                   \
		int64_t handed = (int64_t)(expected);                                                                  \
		if (handed)                                                                                            \
			adu_add(connection, handed);                                                                   \
		ssize_t accepted = call;                                                                               \
		int64_t excess = handed - (accepted > 0 ? accepted : 0);                                               \
		if (excess)                                                                                            \
			adu_add(connection, -excess);                                                                  \
		return accepted;                                                                                       \
	} while (0)

static size_t sum(const struct iovec *parts, size_t count)
{
	size_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

EXPORT ssize_t write(int fd, const void *bytes, size_t length)
{
	ADU_REAL(write);
	REPORTED(fd, length, real_write(fd, bytes, length));
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	ADU_REAL(writev);
	REPORTED(fd, count > 0 ? sum(parts, (size_t)count) : 0, real_writev(fd, parts, count));
}

EXPORT ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
	ADU_REAL(send);
	REPORTED(fd, length, real_send(fd, bytes, length, flags));
}

EXPORT ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t size)
{
	ADU_REAL(sendto);
	REPORTED(fd, length, real_sendto(fd, bytes, length, flags, to, size));
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ADU_REAL(sendmsg);
	REPORTED(fd, sum(message->msg_iov, message->msg_iovlen), real_sendmsg(fd, message, flags));
}

/* The result is a number of messages, and each tells its bytes. */
EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	ADU_REAL(sendmmsg);
	struct connection *connection = adu_find(fd);
	if (!connection)
		return real_sendmmsg(fd, messages, count, flags);
	int64_t handed = 0;
	for (unsigned i = 0; i < count; i++)
		handed += (int64_t)sum(messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
	adu_add(connection, handed);
	int sent = real_sendmmsg(fd, messages, count, flags);
	for (int i = 0; i < sent; i++)
		handed -= messages[i].msg_len;
	if (handed)
		adu_add(connection, -handed);
	return sent;
}

/* Programs ask for more than the file has. */
static size_t rest_of(int file, const off_t *offset, size_t most)
{
	struct stat status;
	if (fstat(file, &status) || !S_ISREG(status.st_mode))
		return most;
	off_t from = offset ? *offset : lseek(file, 0, SEEK_CUR);
	off_t rest = from < status.st_size ? status.st_size - from : 0;
	return (size_t)rest < most ? (size_t)rest : most;
}

EXPORT ssize_t sendfile(int fd, int file, off_t *offset, size_t count)
{
	ADU_REAL(sendfile);
	REPORTED(fd, rest_of(file, offset, count), real_sendfile(fd, file, offset, count));
}

EXPORT ssize_t sendfile64(int fd, int file, off64_t *offset, size_t count)
{
	ADU_REAL(sendfile64);
	REPORTED(fd, rest_of(file, offset, count), real_sendfile64(fd, file, offset, count));
}

/* A pipe has less than a program asks for. */
static size_t in_pipe(int fd, size_t most)
{
	int bytes = 0;
	if (ioctl(fd, FIONREAD, &bytes) || bytes < 0)
		return 0;
	return (size_t)bytes < most ? (size_t)bytes : most;
}

EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags)
{
	ADU_REAL(splice);
	REPORTED(to, in_pipe(from, length), real_splice(from, from_offset, to, to_offset, length, flags));
}
