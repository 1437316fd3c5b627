"""What a fit will charge, told before it reads a row: from the method's own plan, and so from public facts alone.

A method that has `planned(config, schema, budget) -> Planned` is explained by `understudy plan`.
"""

from dataclasses import dataclass

from understudy.privacy import Event, Gaussian
from understudy.privacy.events import NonPrivate
from understudy.privacy.ledger import Entry
from understudy.schema import Schema


@dataclass(frozen=True)
class Planned:
    """The uses of the rows, with the events that the fit will charge for them, and what else the plan decides.

    facts: pairs of a heading and words.
    """

    entries: tuple[Entry, ...]
    facts: tuple[tuple[str, str], ...] = ()


def gaussian_event(noise_multiplier: float) -> Event:
    """One Gaussian release; without noise nothing is private."""
    return Gaussian(noise_multiplier) if noise_multiplier else NonPrivate()


def one_way_entry(schema: Schema, noise_multiplier: float) -> Entry:
    """The release of all one-way tables, with which most methods begin."""
    return Entry(gaussian_event(noise_multiplier), f"one-way tables of {len(schema.modelled)} columns")
