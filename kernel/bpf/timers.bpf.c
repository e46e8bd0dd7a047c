/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Timers of the kernel's TCP do not follow virtual time. This program sets their limits on each connection of a cgroup,
 * when it is established, on both sides. */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

/* The loader writes the values. Zero: leave the kernel's. */
const volatile int rto_min_us = 0;
const volatile int delack_max_us = 0;
const volatile int initial_window = 0;

/* Connections whose values were set, and options that the kernel has rejected. The loader prints these. */
__u64 connections, rejected;

static inline void set(struct bpf_sock_ops *ops, int option, int value)
{
	if (value > 0 && bpf_setsockopt(ops, PROTOCOL_TCP, option, &value, sizeof value))
		__sync_fetch_and_add(&rejected, 1);
}

SEC("sockops")
int set_timers(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		set(ops, TCP_BPF_RTO_MIN, rto_min_us);
		set(ops, TCP_BPF_DELACK_MAX, delack_max_us);
		set(ops, TCP_BPF_IW, initial_window);
		__sync_fetch_and_add(&connections, 1);
	}
	return 1;
}
