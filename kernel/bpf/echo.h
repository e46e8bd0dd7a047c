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

/* Counts of window changes and of corrections by mend(). The loader prints the sums. */
__u64 ups, downs, mended;

static inline void count(__u32 up)
{
	__sync_fetch_and_add(up ? &ups : &downs, 1);
}

/* Reno's threshold after a loss: half of the window. */
static inline __u32 halved(__u32 window)
{
	return window / 2 > 2 ? window / 2 : 2;
}

/* On Linux 6.18 the kernel rarely does not run the programs of a congestion control at the start of a recovery, and
 * takes a threshold from uninitialized memory, often about 2^31. The window follows the threshold in recovery, and the
 * whole send buffer would leave at once. So each program that runs before the next transmission gives both the values that
 * the start of a recovery should have given. In the states CWR and Recovery nothing else changes the threshold. */
static inline void mend(struct sock *sk, __u32 repair)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 threshold = halved(tp->prior_cwnd);
	int wrong = tp->snd_ssthresh > INFINITE || tp->snd_cwnd > INFINITE;
	if (repair == CA_CWR || repair == CA_RECOVERY)
		wrong |= tp->snd_ssthresh != threshold;
	if (!wrong)
		return;
	tp->snd_ssthresh = threshold;
	if (tp->snd_cwnd > tp->prior_cwnd)
		tp->snd_cwnd = threshold;
	__sync_fetch_and_add(&mended, 1);
}

/* The default of net.ipv4.tcp_min_tso_segs. */
#define MIN_TSO_SEGS 2

#endif
