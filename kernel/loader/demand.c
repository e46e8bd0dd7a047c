/* Sends the demand that adu.bpf.c has noted: the same records as those of the library. */
#define _GNU_SOURCE
#include "loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <bpf/bpf.h>

#include "../adu/record.h"
#include "../bpf/flow.h"

#define BATCH 1024
/* Twice the connections: a table with free places needs few steps. */
#define PLACES (2 * FLOWS)

struct sent {
	struct flow flow;
	__u64 cookie;
	__u64 written;
	/* The round of reading in which the connection was last there. */
	__u64 round;
};

struct demand {
	int map, socket;
	struct sockaddr_un address;
	__u64 round;
	struct sent sent[PLACES];
	struct flow keys[BATCH];
	struct progress values[BATCH];
};

struct demand *open_demand(struct bpf_object *object, const char *path)
{
	struct demand *demand = calloc(1, sizeof *demand);
	struct bpf_map *map = bpf_object__find_map_by_name(object, "flows");
	if (!demand || !map)
		fail(errno, "adu: the object has no map of connections");
	if (!*path || strlen(path) >= sizeof demand->address.sun_path)
		fail(0, "--adu: %s: a path of 1 to %zu bytes", path, sizeof demand->address.sun_path - 1);
	demand->map = bpf_map__fd(map);
	/* Round 0 is that of empty places. */
	demand->round = 1;
	demand->address.sun_family = AF_UNIX;
	strcpy(demand->address.sun_path, path);
	demand->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (demand->socket < 0)
		fail(errno, "adu: socket");
	return demand;
}

/* The place of a connection in the table: its own, or the first that a former connection has left. */
static struct sent *place_of(struct demand *demand, const struct flow *flow, __u64 cookie)
{
	__u64 hash = cookie * 0x9e3779b97f4a7c15ULL;
	struct sent *free = NULL;
	for (__u64 i = 0; i < PLACES; i++) {
		struct sent *sent = &demand->sent[((hash >> 40) + i) % PLACES];
		if (sent->cookie == cookie && !memcmp(&sent->flow, flow, sizeof *flow))
			return sent;
		if (!free && sent->round + 1 < demand->round)
			free = sent;
		if (!sent->cookie)
			break;
	}
	if (free)
		*free = (struct sent){.flow = *flow, .cookie = cookie};
	return free;
}

/* Returns false if the switch has not taken the record. */
static bool report(struct demand *demand, const struct flow *flow, int kind, __u64 written)
{
	struct adu_record record = {
		.magic = ADU_MAGIC,
		.version = ADU_VERSION,
		.kind = (__u8)kind,
		.local_address = flow->local_address,
		.remote_address = flow->remote_address,
		.local_port = flow->local_port,
		.remote_port = flow->remote_port,
		.written = written,
	};
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	record.magic = __builtin_bswap32(record.magic);
	record.written = __builtin_bswap64(record.written);
#endif
	return sendto(demand->socket, &record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (struct sockaddr *)&demand->address, sizeof demand->address) == sizeof record;
}

static void send_one(struct demand *demand, const struct flow *flow, const struct progress *progress)
{
	struct sent *sent = place_of(demand, flow, progress->cookie);
	if (!sent)
		return;
	sent->round = demand->round;
	/* A record that was not taken is sent again in the next round. */
	if (sent->written != progress->written && report(demand, flow, ADU_WRITTEN, progress->written))
		sent->written = progress->written;
	/* The end has no later record that corrects a lost one. A switch that is away does not need it. */
	if (progress->closed && (report(demand, flow, ADU_CLOSED, progress->written) || errno != EAGAIN))
		bpf_map_delete_elem(demand->map, flow);
}

void send_demand(struct demand *demand)
{
	/* A place in a batch is a bucket of the hash table. */
	__u32 in, out, count;
	void *from = NULL;
	demand->round++;
	for (;;) {
		count = BATCH;
		int error = bpf_map_lookup_batch(demand->map, from, &out, demand->keys, demand->values, &count, NULL);
		if (error && errno != ENOENT)
			return;
		for (__u32 i = 0; i < count; i++)
			send_one(demand, &demand->keys[i], &demand->values[i]);
		if (error)
			return;
		in = out;
		from = &in;
	}
}
