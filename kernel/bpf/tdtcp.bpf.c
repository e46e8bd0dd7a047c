/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TDTCP in small: a sender has a window and a threshold for each kind of path, and swaps them when the kind changes
 * (TDTCP, section 3). The echo bit tells the kind: 0 is the packet network, 1 a circuit.
 *
 * The kernel has one round-trip time, one scoreboard and one state of recovery a connection; a congestion control
 * cannot add others. So losses of both paths are repaired together, and a change of path during a repair takes
 * effect after it. The paper's TDTCP has these for each kind of path. */
#include "echo.h"

char LICENSE[] SEC("license") = "GPL";

struct division {
	__u32 window;
	__u32 threshold;
	/* Acknowledged segments since the last growth. */
	__u32 counted;
};

struct state {
	struct division other;
	__u32 applied;
	/* The division in which the last loss was. */
	__u32 at_loss;
};

SEC("struct_ops/tdtcp_init")
void BPF_PROG(tdtcp_init, struct sock *sk)
{
	struct state *state = ca_private(sk);
	/* Each division starts as a new connection does. */
	state->other.window = tcp_sk(sk)->snd_cwnd;
	state->other.threshold = INFINITE;
	state->other.counted = 0;
	state->applied = 0;
	state->at_loss = 0;
}

SEC("struct_ops/tdtcp_in_ack_event")
void BPF_PROG(tdtcp_in_ack_event, struct sock *sk, __u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *state = ca_private(sk);
	__u32 echo = echo_of(sk), repair = ca_state(sk);
	mend(sk, repair);
	if (echo == state->applied || repair == CA_RECOVERY || repair == CA_CWR)
		return;
	struct division former = {tp->snd_cwnd, tp->snd_ssthresh, tp->snd_cwnd_cnt};
	state->applied = echo;
	tp->snd_cwnd = state->other.window ?: 1;
	tp->snd_ssthresh = state->other.threshold;
	tp->snd_cwnd_cnt = state->other.counted;
	state->other = former;
	count(echo);
}

SEC("struct_ops/tdtcp_set_state")
void BPF_PROG(tdtcp_set_state, struct sock *sk, __u8 next)
{
	mend(sk, next);
}

/* The kernel asks this before each transmission of new data. */
SEC("struct_ops/tdtcp_min_tso_segs")
__u32 BPF_PROG(tdtcp_min_tso_segs, struct sock *sk)
{
	mend(sk, ca_state(sk));
	return MIN_TSO_SEGS;
}

SEC("struct_ops/tdtcp_cong_avoid")
void BPF_PROG(tdtcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/tdtcp_ssthresh")
__u32 BPF_PROG(tdtcp_ssthresh, struct sock *sk)
{
	struct state *state = ca_private(sk);
	state->at_loss = state->applied;
	return halved(tcp_sk(sk)->snd_cwnd);
}

/* An undo belongs to the division that had the loss. */
SEC("struct_ops/tdtcp_undo_cwnd")
__u32 BPF_PROG(tdtcp_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *state = ca_private(sk);
	__u32 prior = tp->prior_cwnd, window = tp->snd_cwnd;
	if (state->at_loss == state->applied)
		return prior > window ? prior : window;
	if (prior > state->other.window)
		state->other.window = prior;
	return window;
}

SEC(".struct_ops")
struct tcp_congestion_ops tdtcp = {
	.init = (void *)tdtcp_init,
	.in_ack_event = (void *)tdtcp_in_ack_event,
	.set_state = (void *)tdtcp_set_state,
	.min_tso_segs = (void *)tdtcp_min_tso_segs,
	.cong_avoid = (void *)tdtcp_cong_avoid,
	.ssthresh = (void *)tdtcp_ssthresh,
	.undo_cwnd = (void *)tdtcp_undo_cwnd,
	.flags = UNRESTRICTED,
	.name = "@LEEWARD-NAME@",
};
