"""Experiments of Zhu's thesis on tail-latency SLOs (CMU 2017), on public traces.

Workloads are drawn from the traces that were released with WorkloadCompactor (`workloads`). The modules
compare the number of servers that each method of rate limits needs (`packing`), and the admission by each
policy (`admission`). They also count the SLOs that are kept in a replay of the second half of each trace,
with limits from the first half (`held_out`). In chapter 3, workloads share machines under several schedulers
(`contention`, `chapter3`); their gaps are independent, correlated, or those of released traces (`gaps`).
"""
