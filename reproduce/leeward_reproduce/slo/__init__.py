"""Tail-latency SLOs: Zhu's thesis (CMU 2017), its experiments on public traces.

Workloads are drawn from the traces that were released with WorkloadCompactor (`workloads`). The modules
compare the number of servers that each method of rate limits needs (`packing`), the admission by each policy
(`admission`), and kept SLOs in a replay of the half of the traces that no limit is based on (`held_out`).
"""
