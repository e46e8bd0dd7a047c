/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reno whose window changes with the echo bit: the hooks that reTCP and TDTCP have in common. A file that includes this
 * header defines change(), which is what the echo does to the window, and the hooks `init` and `undo_cwnd`.
 *
 * While losses are repaired (states Recovery and CWR) the kernel computes the window itself, and sets it to the
 * threshold at the end. A transition in this time takes effect after it, if it still holds then. After a timeout the
 * window grows in the usual way, and transitions apply at once. */
#ifndef LEEWARD_BPF_RENO_H
#define LEEWARD_BPF_RENO_H

#include "echo.h"

char LICENSE[] SEC("license") = "GPL";

/* The private bytes of a connection begin with this. */
struct reno {
	/* The echo that the window has followed. */
	__u32 applied;
	/* The value of `applied` at the last loss, for an undo. */
	__u32 at_loss;
};

/* Changes the window for an echo that is not the one before. */
static inline void change(struct sock *sk, __u32 echo);

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

SEC("struct_ops/in_ack_event")
void BPF_PROG(in_ack_event, struct sock *sk, __u32 flags)
{
	struct reno *reno = ca_private(sk);
	__u32 echo = echo_of(sk), repair = ca_state(sk);
	mend(sk, repair);
	if (echo == reno->applied || repair == CA_RECOVERY || repair == CA_CWR)
		return;
	reno->applied = echo;
	change(sk, echo);
	count(echo);
}

SEC("struct_ops/set_state")
void BPF_PROG(set_state, struct sock *sk, __u8 next)
{
	mend(sk, next);
}

/* The default of net.ipv4.tcp_min_tso_segs. */
#define MIN_TSO_SEGS 2

/* The kernel asks this before each transmission of new data. */
SEC("struct_ops/min_tso_segs")
__u32 BPF_PROG(min_tso_segs, struct sock *sk)
{
	mend(sk, ca_state(sk));
	return MIN_TSO_SEGS;
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(ssthresh, struct sock *sk)
{
	struct reno *reno = ca_private(sk);
	reno->at_loss = reno->applied;
	return halved(tcp_sk(sk)->snd_cwnd);
}

/* The members of struct tcp_congestion_ops. Names of congestion controls are global to the machine, so each lab has its
 * own. The loader replaces these bytes. */
#define RENO_OPS                                                                                                       \
	.init = (void *)init, .in_ack_event = (void *)in_ack_event, .set_state = (void *)set_state,                    \
	.min_tso_segs = (void *)min_tso_segs, .cong_avoid = (void *)cong_avoid, .ssthresh = (void *)ssthresh,          \
	.undo_cwnd = (void *)undo_cwnd, .flags = UNRESTRICTED, .name = "@LEEWARD-NAME@"

#endif
