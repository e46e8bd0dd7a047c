"""Background of a rack: workers that think and transfer, with a given utilization of its link.

Workers wait for their transfers. While k of n workers transfer, they share the link, and each has at most the
rate of its interface; the others think. This is a queue with a finite population (machine repairmen), whose
utilization depends on the means alone, because transfers share equally. The think time for a utilization
follows from it.
"""

import numpy

LEAST_THINK, MOST_THINK = 1e-7, 1e5
"""Bounds on the ratio of the think time to the time of a transfer alone on the link."""
_STEPS = 80


def utilization(workers: int, think_s: float, transfer_bits: float, link_bps: float, nic_bps: float) -> float:
    """Utilization of a link by workers, 0 to 1.

    Args:
        workers: Number of workers.
        think_s: Mean time between the transfers of a worker.
        transfer_bits: Mean size of a transfer.
        link_bps: Rate of the link.
        nic_bps: Largest rate of a transfer.
    """
    busy = numpy.arange(1, workers + 1)
    rates = numpy.minimum(busy * nic_bps, link_bps)
    # Logarithms of the ratios of the probabilities of k and k - 1 transfers, which balance arrivals and ends.
    ratios = numpy.log((workers - busy + 1) / think_s) - numpy.log(rates / transfer_bits)
    weights = numpy.concatenate([[0.0], numpy.cumsum(ratios)])
    weights = numpy.exp(weights - weights.max())
    carried = float((weights[1:] * rates).sum() / weights.sum())
    return carried / link_bps


def think_s(target: float, workers: int, transfer_bits: float, link_bps: float, nic_bps: float) -> float:
    """Mean think time for which workers use a share of a link; the bound that is nearest if none does."""
    alone = transfer_bits / min(link_bps, nic_bps)
    low, high = numpy.log(LEAST_THINK * alone), numpy.log(MOST_THINK * alone)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if utilization(workers, float(numpy.exp(middle)), transfer_bits, link_bps, nic_bps) > target:
            low = middle
        else:
            high = middle
    return float(numpy.exp(0.5 * (low + high)))


def mean_bytes(sizes: tuple[int, int]) -> float:
    """Mean of log-uniform sizes."""
    return (sizes[1] - sizes[0]) / float(numpy.log(sizes[1] / sizes[0])) if sizes[1] > sizes[0] else sizes[0]
