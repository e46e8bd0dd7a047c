"""Types of NumPy arrays."""

from typing import Any

import numpy

Floats = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
Ints = numpy.ndarray[Any, numpy.dtype[numpy.int64]]
Mask = numpy.ndarray[Any, numpy.dtype[numpy.bool_]]
