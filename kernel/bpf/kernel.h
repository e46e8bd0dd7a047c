/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The few structures of the kernel that the programs use. They list only the fields that are read or written: the
 * loader finds the true offset of each field in the BTF of the running kernel (preserve_access_index), so that no
 * header of a certain kernel is needed. */
#ifndef LEEWARD_BPF_KERNEL_H
#define LEEWARD_BPF_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define AF_INET 2
#define AF_INET6 10
#define ETH_P_IP 0x0800
#define PROTOCOL_TCP 6

/* States of a connection (include/net/tcp_states.h). */
enum { ESTABLISHED = 1, SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, TIME_WAIT };
enum { CLOSE = 7, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING };

/* States of congestion control (enum tcp_ca_state). */
enum { CA_OPEN, CA_DISORDER, CA_CWR, CA_RECOVERY, CA_LOSS };

/* The threshold of slow start before the first loss (TCP_INFINITE_SSTHRESH). */
#define INFINITE 0x7fffffff

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
};

struct sock {
	struct sock_common __sk_common;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_una;
	__u32 write_seq;
	__u64 bytes_acked;
	__u32 snd_cwnd;
	__u32 snd_cwnd_cnt;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, __u32, __u32);
	void (*set_state)(struct sock *, __u8);
	__u32 (*min_tso_segs)(struct sock *);
	void (*in_ack_event)(struct sock *, __u32);
	__u32 (*undo_cwnd)(struct sock *);
	__u32 flags;
	void (*init)(struct sock *);
	char name[16];
};

#pragma clang attribute pop

/* A congestion control with this flag can be the default of a network namespace (TCP_CONG_NON_RESTRICTED). */
#define UNRESTRICTED 1

/* The growth of the kernel's own Reno (net/ipv4/tcp_cong.c). */
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

static inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* The private bytes of the congestion control of a socket. */
static inline void *ca_private(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static inline __u32 ca_state(struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);
}

#endif
