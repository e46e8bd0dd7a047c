/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reTCP: Reno whose window follows circuits (Etalon, section 4.4). When the echo bit goes from 0 to 1, the window is
 * multiplied by alpha; from 1 to 0, by beta.
 *
 * The threshold of slow start is scaled with the window. So the window stays on the same side of the threshold: a
 * window that grew linearly neither falls back into slow start after beta, nor ends a slow start by alpha.
 *
 * While losses are repaired (states Recovery and CWR) the kernel computes the window itself, and sets it to the
 * threshold at the end. A transition in this time takes effect after it, if it still holds then. After a timeout the
 * window grows in the usual way, and transitions apply at once. */
#include "echo.h"

char LICENSE[] SEC("license") = "GPL";

/* The loader writes the factors, as fractions. */
struct factor {
	__u32 numerator, denominator;
};
const volatile struct factor alpha = {2, 1};
const volatile struct factor beta = {1, 2};

struct state {
	/* The echo that the window has followed. */
	__u32 applied;
	/* The value of `applied` at the last loss, for an undo. */
	__u32 at_loss;
};

#define FEWEST 2

static inline __u32 scale(__u32 value, __u32 up, __u32 most)
{
	__u64 n = up ? alpha.numerator : beta.numerator;
	__u64 d = up ? alpha.denominator : beta.denominator;
	__u64 scaled = d ? (__u64)value * n / d : value;
	/* A window of one segment, after a timeout, does not grow by the lower limit. */
	__u64 fewest = value < FEWEST ? value : FEWEST;
	return scaled < fewest ? fewest : scaled > most ? most : scaled;
}

SEC("struct_ops/retcp_init")
void BPF_PROG(retcp_init, struct sock *sk)
{
	struct state *state = ca_private(sk);
	state->applied = 0;
	state->at_loss = 0;
}

SEC("struct_ops/retcp_in_ack_event")
void BPF_PROG(retcp_in_ack_event, struct sock *sk, __u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *state = ca_private(sk);
	__u32 echo = echo_of(sk), repair = ca_state(sk);
	mend(sk, repair);
	if (echo == state->applied || repair == CA_RECOVERY || repair == CA_CWR)
		return;
	state->applied = echo;
	tp->snd_cwnd = scale(tp->snd_cwnd, echo, tp->snd_cwnd_clamp);
	if (tp->snd_ssthresh < INFINITE)
		tp->snd_ssthresh = scale(tp->snd_ssthresh, echo, INFINITE);
	count(echo);
}

SEC("struct_ops/retcp_set_state")
void BPF_PROG(retcp_set_state, struct sock *sk, __u8 next)
{
	mend(sk, next);
}

/* The kernel asks this before each transmission of new data. */
SEC("struct_ops/retcp_min_tso_segs")
__u32 BPF_PROG(retcp_min_tso_segs, struct sock *sk)
{
	mend(sk, ca_state(sk));
	return MIN_TSO_SEGS;
}

SEC("struct_ops/retcp_cong_avoid")
void BPF_PROG(retcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/retcp_ssthresh")
__u32 BPF_PROG(retcp_ssthresh, struct sock *sk)
{
	struct state *state = ca_private(sk);
	state->at_loss = state->applied;
	return halved(tcp_sk(sk)->snd_cwnd);
}

/* Reno goes back to the window before the loss. If the circuit has changed since, that window is scaled too. */
SEC("struct_ops/retcp_undo_cwnd")
__u32 BPF_PROG(retcp_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *state = ca_private(sk);
	__u32 prior = tp->prior_cwnd;
	if (state->at_loss != state->applied)
		prior = scale(prior, state->applied, tp->snd_cwnd_clamp);
	return prior > tp->snd_cwnd ? prior : tp->snd_cwnd;
}

/* Names of congestion controls are global to the machine, so each lab has its own. The loader replaces these bytes. */
SEC(".struct_ops")
struct tcp_congestion_ops retcp = {
	.init = (void *)retcp_init,
	.in_ack_event = (void *)retcp_in_ack_event,
	.set_state = (void *)retcp_set_state,
	.min_tso_segs = (void *)retcp_min_tso_segs,
	.cong_avoid = (void *)retcp_cong_avoid,
	.ssthresh = (void *)retcp_ssthresh,
	.undo_cwnd = (void *)retcp_undo_cwnd,
	.flags = UNRESTRICTED,
	.name = "@LEEWARD-NAME@",
};
