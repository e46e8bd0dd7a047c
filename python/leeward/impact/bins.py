"""Bins of latencies: whole numbers, computed without a logarithm, so that all machines agree.

A latency of less than 512 ns has a bin of its own; above, each doubling has 256 of equal width. A bin stands
for its middle, which is within `ERROR` of all its values; so a quotient of two percentiles is within twice
that of the quotient of the exact ones.
"""

import numpy
from numpy.typing import NDArray

Whole = NDArray[numpy.int64]

_BITS = 8
ERROR = 1 / (2 << _BITS)
"""Greatest distance of a bin's middle from its values, as a share of the values: 0.2 %."""
MOST = 1 << 53
"""Nanoseconds below which latencies have a bin: doubles represent every whole number up to there."""


def bins(latency_ns: Whole) -> Whole:
    """The bins of latencies from 1 ns to below `MOST`."""
    # The exponent of a double is exact, unlike a logarithm.
    _, exponent = numpy.frexp(latency_ns.astype(numpy.float64))
    shift = numpy.maximum(exponent.astype(numpy.int64) - 1 - _BITS, 0)
    return numpy.asarray((shift << _BITS) + (latency_ns >> shift), dtype=numpy.int64)


def middles(bins: Whole) -> NDArray[numpy.float64]:
    """Middles of bins, in nanoseconds."""
    shift = numpy.maximum((bins >> _BITS) - 1, 0)
    lower = (bins - (shift << _BITS)) << shift
    return numpy.asarray(lower + ((1 << shift) - 1) / 2, dtype=numpy.float64)
