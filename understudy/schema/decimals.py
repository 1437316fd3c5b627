"""Numbers in single precision as they are written: with the fewest digits that tell them."""

import numpy as np


def shortest_decimals(codes: np.ndarray, low: float, high: float) -> np.ndarray:
    """For every float32 between two bounds the number of fewest digits that it stands for, as float64; NaN stays.

    Widened, they would show digits that no one wrote: 9.20624 would be 9.206239700317383. A number beyond a bound, as
    0.1 may be where the first float32 above the bound stands for it, keeps all digits of its float32, which lies
    inside. Larger codes have larger numbers, and each is read as the same code again.

    >>> shortest_decimals(np.array([9.20624, -0.1, 3e-12], dtype=np.float32), -1, 10).tolist()
    [9.20624, -0.1, 3e-12]
    """
    import pyarrow as pa  # here, since schemas alone need no Arrow

    # Arrow writes the fewest digits that tell a float32, and reads what is nearest to them: .15 microseconds a number.
    codes = np.ascontiguousarray(codes, dtype=np.float32)
    numbers = pa.array(codes.ravel()).cast(pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    numbers = numbers.reshape(codes.shape)
    return np.where((numbers < low) | (numbers > high), codes, numbers)
