/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Demand of programs that no library can be loaded into: static ones. The kernel knows how many bytes a program has
 * written on a connection (write_seq). Programs at the egress and ingress of a cgroup note this number with each
 * packet, and the loader sends the changes.
 *
 * The kernel takes no more than the send buffer has room for. So a blocking write of 1 GB is seen piece by piece,
 * whereas the library sees it at once. */
#include "kernel.h"
#include "flow.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FLOWS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct flow);
	__type(value, struct progress);
} flows SEC(".maps");

/* The position of a socket in the sequence numbers. */
struct position {
	__u32 last;
	__u64 written;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct position);
} positions SEC(".maps");

/* True once the application has closed its direction. */
static inline int has_closed(__u8 state)
{
	return state == FIN_WAIT1 || state == FIN_WAIT2 || state == CLOSING || state == LAST_ACK || state == TIME_WAIT ||
	       state == CLOSE;
}

static inline int note(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	if (!sk || !(sk = bpf_sk_fullsock(sk)) || sk->protocol != PROTOCOL_TCP || skb->protocol != bpf_htons(ETH_P_IP))
		return 1;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 1;
	struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	__u8 state = common->skc_state;
	if (state == LISTEN)
		return 1;
	__u32 sequence = tp->write_seq;

	struct position *position = bpf_sk_storage_get(&positions, sk, 0, 0);
	if (!position) {
		/* The first packet of a client is its SYN, which has one sequence number. A server's socket is seen
		 * after that, and bytes_acked does not count it. A connection that is older than this program can
		 * count one byte too many. */
		struct position first = {.last = sequence};
		if (state != SYN_SENT)
			first.written = tp->bytes_acked + (sequence - tp->snd_una);
		position = bpf_sk_storage_get(&positions, sk, &first, BPF_SK_STORAGE_GET_F_CREATE);
		if (!position)
			return 1;
	}
	/* The FIN has the last sequence number, and the state changes shortly before it is counted. So the number stays
	 * that of the last data: the last one before the end, plus what was written since, less the FIN. */
	__u32 more = sequence - position->last;
	__u64 written = position->written;
	if (!has_closed(state)) {
		position->last = sequence;
		position->written = written += more;
	} else if (more > 0 && more < 1U << 31) {
		written += more - 1;
	}

	struct flow flow = {
		.local_address = common->skc_rcv_saddr,
		.remote_address = common->skc_daddr,
		.local_port = bpf_htons(common->skc_num),
		.remote_port = common->skc_dport,
	};
	__u64 cookie = bpf_get_socket_cookie(skb);
	__u8 closed = has_closed(state);
	struct progress *old = bpf_map_lookup_elem(&flows, &flow);
	if (old && old->cookie == cookie) {
		if (written > old->written)
			old->written = written;
		if (closed)
			old->closed = 1;
		return 1;
	}
	/* The handshake has no demand, and an end of what was never told needs no record. */
	if (!written || closed)
		return 1;
	struct progress new = {.cookie = cookie, .written = written};
	bpf_map_update_elem(&flows, &flow, &new, BPF_ANY);
	return 1;
}

SEC("cgroup_skb/egress")
int note_sent(struct __sk_buff *skb)
{
	return note(skb);
}

/* An acknowledgement makes room in the send buffer, and a blocked program writes on. */
SEC("cgroup_skb/ingress")
int note_received(struct __sk_buff *skb)
{
	return note(skb);
}

/* A reset ends a connection without a packet of its own. */
SEC("sockops")
int note_end(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
	if (ops->op != BPF_SOCK_OPS_STATE_CB || ops->args[1] != CLOSE)
		return 1;
	struct flow flow = {
		.local_address = ops->local_ip4,
		.remote_address = ops->remote_ip4,
		.local_port = bpf_htons(ops->local_port),
		/* Unlike the local port, this one is a word in network byte order. */
		.remote_port = bpf_htons(bpf_ntohl(ops->remote_port)),
	};
	struct progress *old = bpf_map_lookup_elem(&flows, &flow);
	if (old && old->cookie == bpf_get_socket_cookie(ops))
		old->closed = 1;
	return 1;
}
