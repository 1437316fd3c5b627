"""Networks kept on the way through a training, for boosting: released like the last ones, under the same charge."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.training.nets import Params


class Trajectory:
    """The last `count` checkpoints of what `networks` picks from a state, by name."""

    def __init__(self, count: int, networks: Callable[[Any], dict[str, Params]]) -> None:
        self._kept: deque[dict[str, Params]] = deque(maxlen=count)
        self._networks = networks

    def add(self, step: int, state: Any) -> None:
        """For `loop.run`."""
        if self._kept.maxlen:
            self._kept.append(self._networks(state))

    def arrays(self) -> dict[str, np.ndarray]:
        """Checkpoints one above the other, oldest first: generator.<layer>.w, critic.<layer>.w and so on."""
        if not self._kept:
            return {}
        return {
            f"{name}.{place}.{part}": np.stack([np.asarray(kept[name][place][part]) for kept in self._kept])
            for name, layers in self._kept[0].items()
            for place in range(len(layers))
            for part in ("w", "b")
        }
