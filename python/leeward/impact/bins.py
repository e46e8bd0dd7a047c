"""Bins of latencies: whole numbers, computed without a logarithm, so that all machines agree.

Each latency below 512 ns has its own bin. Above, each range from a latency to its double has 256 bins of
equal width. The middle of a bin stands for all its values, and is within `ERROR` of each. So a quotient of
two percentiles is within twice `ERROR` of the exact quotient.
"""

import numpy
from numpy.typing import NDArray

Whole = NDArray[numpy.int64]

_BITS = 8
ERROR = 1 / (2 << _BITS)
"""Greatest distance of a bin's middle from its values, as a share of the values: 0.2 %."""
MOST = 1 << 53
"""Nanoseconds below which latencies have a bin: doubles represent every whole number up to this limit."""


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
