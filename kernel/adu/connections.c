/* Table from descriptors to connections, with the bytes that each has written. */
#define _GNU_SOURCE
#include "adu.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Descriptors above, and connections beyond, are not seen. */
#define DESCRIPTORS 65536
#define CONNECTIONS 16384

struct connection {
	/* Descriptors in all processes that share this memory. Zero: the place is free. */
	_Atomic int descriptors;
	/* The kernel's number of the socket: another descriptor of the same socket has it too. */
	uint64_t cookie;
	_Atomic int64_t written;
	uint32_t local_address, remote_address;
	uint16_t local_port, remote_port;
};

enum { UNKNOWN, OTHER, FIRST };

/* One entry a descriptor: UNKNOWN, OTHER (not TCP over IPv4), or FIRST + the place of the connection. */
static _Atomic uint32_t kinds[DESCRIPTORS];
/* A bound for scans: descriptors above have not been seen. */
static _Atomic int highest = -1;
static struct connection *connections;
static _Atomic int used;
/* For changes of the two tables. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;

bool adu_owns_memory(void)
{
	return getpid() == owner;
}

/* A child has a copy of each descriptor. The parent counts them before the child exists: otherwise it could close its
 * own first, and the connection would seem closed. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	for (int fd = 0; fd <= highest; fd++)
		if (kinds[fd] >= FIRST)
			connections[kinds[fd] - FIRST].descriptors++;
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	owner = getpid();
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void load(void)
{
	owner = getpid();
	connections = mmap(NULL, CONNECTIONS * sizeof *connections, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (connections == MAP_FAILED)
		connections = NULL;
	else
		pthread_atfork(before_fork, in_parent, in_child);
}

static void report(struct connection *connection, int kind, int64_t written)
{
	struct adu_record record = {
		.magic = ADU_MAGIC,
		.version = ADU_VERSION,
		.kind = (uint8_t)kind,
		.local_address = connection->local_address,
		.remote_address = connection->remote_address,
		.local_port = connection->local_port,
		.remote_port = connection->remote_port,
		.written = (uint64_t)written,
	};
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	record.magic = __builtin_bswap32(record.magic);
	record.written = __builtin_bswap64(record.written);
#endif
	adu_report(&record);
}

void adu_add(struct connection *connection, int64_t bytes)
{
	report(connection, ADU_WRITTEN, atomic_fetch_add(&connection->written, bytes) + bytes);
}

void adu_closed(struct connection *connection)
{
	report(connection, ADU_CLOSED, connection->written);
}

/* An IPv4 address in network byte order, also of an IPv6 socket that speaks IPv4. */
static bool read_address(const struct sockaddr_storage *from, uint32_t *address, uint16_t *port)
{
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)from;
		*address = in->sin_addr.s_addr;
		*port = in->sin_port;
		return true;
	}
	const struct sockaddr_in6 *in6 = (const void *)from;
	if (from->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return false;
	memcpy(address, &in6->sin6_addr.s6_addr[12], sizeof *address);
	*port = in6->sin6_port;
	return true;
}

/* Bytes written before the library saw the socket, for example by a program that has started this one. The kernel
 * counts bytes sent, sent again, and not sent yet. */
static int64_t written_before(int fd)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof info;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) ||
	    length < offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans)
		return 0;
	return (int64_t)(info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes);
}

/* Finds out what a descriptor is. The caller has the lock. */
static uint32_t inspect(int fd)
{
	int protocol = 0;
	socklen_t length = sizeof protocol;
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length))
		return errno == EBADF ? UNKNOWN : OTHER;
	if (protocol != IPPROTO_TCP)
		return OTHER;
	struct sockaddr_storage local, remote;
	socklen_t local_length = sizeof local, remote_length = sizeof remote;
	/* A socket that is not connected yet can be later. */
	if (getpeername(fd, (struct sockaddr *)&remote, &remote_length) ||
	    getsockname(fd, (struct sockaddr *)&local, &local_length))
		return UNKNOWN;
	struct connection found = {.descriptors = 1};
	if (!read_address(&local, &found.local_address, &found.local_port) ||
	    !read_address(&remote, &found.remote_address, &found.remote_port))
		return OTHER;
	length = sizeof found.cookie;
	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &found.cookie, &length);

	struct connection *place = NULL;
	for (int i = 0; i < used; i++) {
		struct connection *c = &connections[i];
		if (c->descriptors > 0 && c->cookie == found.cookie) {
			c->descriptors++;
			return FIRST + (uint32_t)i;
		}
	}
	/* Other processes take places in the same table. */
	for (int i = 0; i < CONNECTIONS && !place; i++) {
		int free = 0;
		if (atomic_compare_exchange_strong(&connections[i].descriptors, &free, 1))
			place = &connections[i];
	}
	if (!place)
		return OTHER;
	place->cookie = found.cookie;
	place->written = written_before(fd);
	place->local_address = found.local_address;
	place->remote_address = found.remote_address;
	place->local_port = found.local_port;
	place->remote_port = found.remote_port;
	int index = (int)(place - connections);
	if (used <= index)
		used = index + 1;
	return FIRST + (uint32_t)index;
}

static void note(int fd, uint32_t kind)
{
	kinds[fd] = kind;
	if (kind != UNKNOWN && fd > highest)
		highest = fd;
}

struct connection *adu_find(int fd)
{
	if (!adu_is_on() || fd < 0 || fd >= DESCRIPTORS || !connections)
		return NULL;
	uint32_t kind = kinds[fd];
	if (kind == UNKNOWN) {
		int error = errno;
		pthread_mutex_lock(&lock);
		kind = kinds[fd];
		if (kind == UNKNOWN)
			note(fd, kind = inspect(fd));
		pthread_mutex_unlock(&lock);
		errno = error;
	}
	return kind >= FIRST ? &connections[kind - FIRST] : NULL;
}

void adu_forget(int fd)
{
	if (!adu_is_on() || fd < 0 || fd > highest || !connections)
		return;
	uint32_t kind = atomic_exchange(&kinds[fd], UNKNOWN);
	if (kind < FIRST)
		return;
	struct connection *c = &connections[kind - FIRST];
	/* The report comes before the place is free for others. */
	if (c->descriptors == 1)
		adu_closed(c);
	c->descriptors--;
}

void adu_copied(int from, int to)
{
	/* A connection that no call has written on yet is found by its cookie when one does. */
	if (!adu_is_on() || from < 0 || to < 0 || from >= DESCRIPTORS || to >= DESCRIPTORS || from == to || !connections)
		return;
	pthread_mutex_lock(&lock);
	uint32_t kind = kinds[from];
	if (kind >= FIRST)
		connections[kind - FIRST].descriptors++;
	note(to, kind);
	pthread_mutex_unlock(&lock);
}

void adu_forget_range(unsigned first, unsigned last)
{
	for (int fd = (int)(first > DESCRIPTORS ? DESCRIPTORS : first); fd <= highest && (unsigned)fd <= last; fd++)
		adu_forget(fd);
}
