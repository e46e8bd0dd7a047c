/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The switch tells a sender by the ECN-echo bit of acknowledgements that a circuit is up. The kernel shows this bit
 * to a congestion control only if ECN is on, and then it also reduces the window. ECN stays off here, and a program
 * at the ingress of the cgroup notes the bit beside the socket.
 *
 * The program sees a packet when it arrives. If the application holds the lock of the socket, TCP processes the
 * packet a little later, so the bit can be ahead of the acknowledgement by the length of that backlog. */
#ifndef LEEWARD_BPF_ECHO_H
#define LEEWARD_BPF_ECHO_H

#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} echoes SEC(".maps");

/* The offset of the TCP header in a packet of a cgroup program, which begins with the IP header; negative if the packet
 * is not TCP. Extension headers of IPv6 are rare and not searched. */
static inline int tcp_offset(struct __sk_buff *skb)
{
	__u8 byte;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, 9, &byte, 1) || byte != PROTOCOL_TCP || bpf_skb_load_bytes(skb, 0, &byte, 1))
			return -1;
		return (byte & 15) * 4;
	}
	if (bpf_skb_load_bytes(skb, 6, &byte, 1) || byte != PROTOCOL_TCP)
		return -1;
	return 40;
}

#define FLAG_SYN 0x02
#define FLAG_ACK 0x10
#define FLAG_ECE 0x40

SEC("cgroup_skb/ingress")
int note_echo(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	__u8 flags;
	int offset;
	/* A request that is not accepted yet has no full socket. */
	if (!sk || !(sk = bpf_sk_fullsock(sk)) || sk->protocol != PROTOCOL_TCP || sk->state == LISTEN)
		return 1;
	offset = tcp_offset(skb);
	/* In a packet with SYN the bit negotiates ECN. */
	if (offset < 0 || bpf_skb_load_bytes(skb, offset + 13, &flags, 1) || (flags & (FLAG_SYN | FLAG_ACK)) != FLAG_ACK)
		return 1;
	__u32 *echo = bpf_sk_storage_get(&echoes, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (echo)
		*echo = !!(flags & FLAG_ECE);
	return 1;
}

static inline __u32 echo_of(struct sock *sk)
{
	__u32 *echo = bpf_sk_storage_get(&echoes, sk, 0, 0);
	return echo ? *echo : 0;
}

#endif
