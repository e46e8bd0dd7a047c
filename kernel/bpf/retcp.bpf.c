/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reTCP: Reno whose window follows circuits (Etalon, section 4.4). When the echo bit goes from 0 to 1, the window is
 * multiplied by alpha; from 1 to 0, by beta.
 *
 * The threshold of slow start is scaled with the window. So the window stays on the same side of the threshold: a
 * window that grew linearly neither falls back into slow start after beta, nor ends a slow start by alpha. */
#include "reno.h"

/* The loader writes the factors, as fractions. */
struct factor {
	__u32 numerator, denominator;
};
const volatile struct factor alpha = {2, 1};
const volatile struct factor beta = {1, 2};

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

SEC("struct_ops/init")
void BPF_PROG(init, struct sock *sk)
{
	struct reno *reno = ca_private(sk);
	reno->applied = 0;
	reno->at_loss = 0;
}

static inline void change(struct sock *sk, __u32 echo)
{
	struct tcp_sock *tp = tcp_sk(sk);
	tp->snd_cwnd = scale(tp->snd_cwnd, echo, tp->snd_cwnd_clamp);
	if (tp->snd_ssthresh < INFINITE)
		tp->snd_ssthresh = scale(tp->snd_ssthresh, echo, INFINITE);
}

/* Reno goes back to the window before the loss. If the circuit has changed since, that window is scaled too. */
SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct reno *reno = ca_private(sk);
	__u32 prior = tp->prior_cwnd;
	if (reno->at_loss != reno->applied)
		prior = scale(prior, reno->applied, tp->snd_cwnd_clamp);
	return prior > tp->snd_cwnd ? prior : tp->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops retcp = {RENO_OPS};
