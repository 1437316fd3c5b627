"""How long steps tell how far they are, without knowing who listens."""

from typing import Protocol


class Progress(Protocol):
    """Called with what is being done and how far it is, from 0 to 1. Never told anything computed from private rows
    that was not released."""

    def __call__(self, stage: str, done: float, note: str = "") -> None: ...


def silent(stage: str, done: float, note: str = "") -> None:
    """The default listener: nobody."""
