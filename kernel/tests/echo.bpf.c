/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A classifier that stands for the switch of a lab: it sets the ECN-echo bit of all TCP packets of an interface. */
#include "../bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tc")
int set_echo(struct __sk_buff *skb)
{
	__u8 byte;
	__be16 word, changed;
	__u32 tcp;
	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, 14 + 9, &byte, 1) || byte != PROTOCOL_TCP ||
	    bpf_skb_load_bytes(skb, 14, &byte, 1))
		return 0;
	tcp = 14 + (byte & 15) * 4;
	if (bpf_skb_load_bytes(skb, tcp + 12, &word, 2) || (word & bpf_htons(0x0002)))
		return 0;
	changed = word | bpf_htons(0x0040);
	if (changed != word) {
		bpf_l4_csum_replace(skb, tcp + 16, word, changed, 2);
		bpf_skb_store_bytes(skb, tcp + 12, &changed, 2, 0);
	}
	return 0;
}
