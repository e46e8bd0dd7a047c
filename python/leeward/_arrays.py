"""Types of NumPy arrays."""

from collections.abc import Sequence
from typing import Any

import numpy

Floats = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
Ids = numpy.ndarray[Any, numpy.dtype[numpy.int32]]
Ints = numpy.ndarray[Any, numpy.dtype[numpy.int64]]
Mask = numpy.ndarray[Any, numpy.dtype[numpy.bool_]]
Hosts = Sequence[int] | Sequence[str] | Ids | Ints
"""Hosts by number or by name."""
