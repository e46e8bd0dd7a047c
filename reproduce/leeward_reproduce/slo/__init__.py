"""Tail-latency SLOs: Zhu's thesis (CMU 2017), its experiments on public traces.

Workloads are drawn from the traces that were released with WorkloadCompactor (`world`). How many servers
each way to choose rate limits needs (`packing`), who is admitted by each policy (`admission`), and whether
what was promised is kept when the half of the traces that no limit was made from is replayed (`held_out`).
"""
