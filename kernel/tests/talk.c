/* A static program, which no library can be loaded into: connects to a port of 127.0.0.1, writes, and ends. Arguments:
 * the port, the bytes of each write, the number of writes, and "close", "reset" or "exit". It prints its own port. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	if (count != 5)
		return 2;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1])),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	size_t size = (size_t)atol(arguments[2]);
	int fd = socket(AF_INET, SOCK_STREAM, 0), writes = atoi(arguments[3]);
	char *bytes = calloc(1, size);
	if (connect(fd, (struct sockaddr *)&address, length))
		return 1;
	getsockname(fd, (struct sockaddr *)&address, &length);
	printf("%d\n", ntohs(address.sin_port));
	for (int i = 0; i < writes; i++) {
		for (size_t done = 0; done < size;) {
			ssize_t written = write(fd, bytes + done, size - done);
			if (written < 0)
				return 1;
			done += (size_t)written;
		}
		usleep(50000);
	}
	if (!strcmp(arguments[4], "reset")) {
		struct linger linger = {.l_onoff = 1};
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	}
	if (strcmp(arguments[4], "exit"))
		close(fd);
	return 0;
}
