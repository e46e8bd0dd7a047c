/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Entries of the map of connections, which adu.bpf.c writes and the loader reads. */
#ifndef LEEWARD_BPF_FLOW_H
#define LEEWARD_BPF_FLOW_H

#include <linux/types.h>

/* Connections that have written at least a byte, and whose end the loader has not sent yet. */
#define FLOWS 16384

/* In network byte order. The local end is the one in the cgroup. */
struct flow {
	__u32 local_address, remote_address;
	__u16 local_port, remote_port;
};

struct progress {
	/* The kernel's number of the socket: a later connection can have the same addresses and ports. */
	__u64 cookie;
	__u64 written;
	__u64 closed;
};

#endif
