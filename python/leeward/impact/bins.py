"""Bins of latencies: whole numbers, found without a logarithm, so that every machine agrees on each.

A latency of less than 512 ns has a bin of its own; above, each doubling has 256 of equal width. A bin stands
for its middle, which is within `ERROR` of everything in it; so a quotient of two percentiles is within twice
that of the quotient of the exact ones.
"""

import numpy
from numpy.typing import NDArray

Whole = NDArray[numpy.int64]

_BITS = 8
ERROR = 1 / (2 << _BITS)
"""How far a bin's middle is from what is in it, at most, as a share of it: 0.2 %."""
MOST = 1 << 53
"""Nanoseconds that have a bin: below this, doubles hold every whole number."""


def bins(latency_ns: Whole) -> Whole:
    """The bins of latencies from 1 ns to below `MOST`."""
    # The exponent of a double is exact, as a logarithm would not be.
    _, exponent = numpy.frexp(latency_ns.astype(numpy.float64))
    shift = numpy.maximum(exponent.astype(numpy.int64) - 1 - _BITS, 0)
    return numpy.asarray((shift << _BITS) + (latency_ns >> shift), dtype=numpy.int64)


def middles(of: Whole) -> NDArray[numpy.float64]:
    """The middles of bins, in nanoseconds."""
    shift = numpy.maximum((of >> _BITS) - 1, 0)
    lower = (of - (shift << _BITS)) << shift
    return numpy.asarray(lower + ((1 << shift) - 1) / 2, dtype=numpy.float64)
