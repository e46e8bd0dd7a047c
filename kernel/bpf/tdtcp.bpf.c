/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TDTCP in small: a sender has a window and a threshold for each kind of path, and swaps them when the kind changes
 * (TDTCP, section 3). The echo bit tells the kind: 0 is the packet network, 1 a circuit.
 *
 * The kernel has one round-trip time, one scoreboard and one state of recovery a connection; a congestion control
 * cannot add others. So losses of both paths are repaired together, and a change of path during a repair takes
 * effect after it. The paper's TDTCP has these for each kind of path. */
#include "reno.h"

struct division {
	__u32 window;
	__u32 threshold;
	/* Acknowledged segments since the last growth. */
	__u32 counted;
};

struct state {
	struct reno reno;
	struct division other;
};

SEC("struct_ops/init")
void BPF_PROG(init, struct sock *sk)
{
	struct state *state = ca_private(sk);
	/* Each division starts as a new connection does. */
	state->other.window = tcp_sk(sk)->snd_cwnd;
	state->other.threshold = INFINITE;
	state->other.counted = 0;
	state->reno.applied = 0;
	state->reno.at_loss = 0;
}

static inline void change(struct sock *sk, __u32 echo)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *state = ca_private(sk);
	struct division former = {tp->snd_cwnd, tp->snd_ssthresh, tp->snd_cwnd_cnt};
	tp->snd_cwnd = state->other.window ?: 1;
	tp->snd_ssthresh = state->other.threshold;
	tp->snd_cwnd_cnt = state->other.counted;
	state->other = former;
}

/* An undo belongs to the division that had the loss. */
SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *state = ca_private(sk);
	__u32 prior = tp->prior_cwnd, window = tp->snd_cwnd;
	if (state->reno.at_loss == state->reno.applied)
		return prior > window ? prior : window;
	if (prior > state->other.window)
		state->other.window = prior;
	return window;
}

SEC(".struct_ops")
struct tcp_congestion_ops tdtcp = {RENO_OPS};
