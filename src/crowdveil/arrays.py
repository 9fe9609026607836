"""Types of NumPy arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
SmallIntArray = NDArray[np.int8]
WordArray = NDArray[np.uint64]
ByteArray = NDArray[np.uint8]
BoolArray = NDArray[np.bool_]
ValueArray = NDArray[np.int8] | NDArray[np.float64]
"""Values of features, or their differences: int8 if the study has only small whole numbers, else float64."""
