"""The games against peers: small neighbouring tables, what is declared about them, and who plays which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

EPSILON, DELTA = 1.0, 1e-6
ROWS, DRAWS = 120, 400
LEAKS = ("value", "constant", "missing", "far")  # games about something that could not be without the row
NUMERIC_ROWS = 300  # bounds that are found with noise need rows
DECLARED, UNDECLARED = "declared", "undeclared"

TOWNS, JOBS, SEXES = ["Bern", "Cork", "Ulm", "Vaduz"], ["baker", "nurse", "smith"], ["f", "m"]
COLUMNS = {"town": {"values": TOWNS}, "job": {"values": JOBS}, "sex": {"values": SEXES}}
WAGE = {"low": 0, "high": 50}
NUMERIC = {"town": {"values": TOWNS[:3]}, "wage": WAGE, "sex": {"values": SEXES}}


@dataclass(frozen=True)
class Game:
    """Two neighbouring tables: `others`, and `others` with the canary."""

    name: str
    words: str
    columns: dict[str, Any]
    others: list[list[Any]]
    canary: list[Any]


def _rows(values: list[list[Any]], rows: int = ROWS) -> list[list[Any]]:
    """Made-up rows: every column by itself, from a fixed seed."""
    rng = np.random.default_rng(0)
    drawn = [[column[place] for place in rng.integers(0, len(column), rows)] for column in values]
    return [list(row) for row in zip(*drawn, strict=True)]


def games() -> dict[str, Game]:
    """All games by name."""
    ordinary = _rows([TOWNS, JOBS, SEXES])
    without_vaduz = _rows([TOWNS[:3], JOBS, SEXES])
    constant = _rows([TOWNS, JOBS[:1], SEXES])
    numeric = _rows([TOWNS[:3], list(range(51)), SEXES], NUMERIC_ROWS)
    made = (
        Game("duplicate", "a second copy of a row", COLUMNS, ordinary, list(ordinary[0])),
        Game("value", "a value that no other row has", COLUMNS, without_vaduz, ["Vaduz", "smith", "m"]),
        Game("constant", "another value in a column that is constant otherwise", COLUMNS, constant,
             ["Bern", "smith", "m"]),
        Game("missing", "a missing cell in a column that has none otherwise", COLUMNS, ordinary, ["Bern", None, "m"]),
        Game("far", "a number far beyond all others", NUMERIC, numeric, ["Bern", 1_000_000, "m"]),
    )  # fmt: skip
    return {game.name: game for game in made}


@dataclass(frozen=True)
class Match:
    """A game against one method of a peer, in one way of using it."""

    peer: str
    method: str
    use: str
    game: str
    runs: int  # of either world, unless time is over
    delta: float = DELTA

    def job(self, seconds: float) -> dict[str, Any]:
        game = games()[self.game]
        return {
            "method": self.method,
            "use": self.use,
            "game": self.game,
            "epsilon": EPSILON,
            "delta": self.delta,
            "runs": self.runs,
            "seconds": seconds,
            "draws": DRAWS,
            "columns": game.columns,
            "others": game.others,
            "canary": game.canary,
        }


def matches() -> tuple[Match, ...]:
    """Careful use first. Fits of smartnoise compile for a second or two each: few runs."""
    found = [Match("datasynthesizer", "privbayes", DECLARED, game, runs, delta=0.0)
             for game, runs in (("duplicate", 150), ("value", 60), ("missing", 60))]  # fmt: skip
    found += [Match("datasynthesizer", "privbayes", UNDECLARED, game, 40, delta=0.0)
              for game in ("duplicate", "value", "far")]  # fmt: skip
    found += [Match("dpmm", "mst", DECLARED, game, 50) for game in ("duplicate", "value", "constant", "missing")]
    found += [Match("dpmm", "mst", UNDECLARED, game, 50) for game in ("value", "far")]
    for method in ("aim", "privbayes"):
        found += [Match("dpmm", method, DECLARED, "constant", 40), Match("dpmm", method, UNDECLARED, "value", 40)]
    found += [Match("smartnoise", "mst", UNDECLARED, "value", 40), Match("smartnoise", "mst", DECLARED, "value", 40)]
    found += [Match("smartnoise", "aim", UNDECLARED, "value", 40), Match("smartnoise", "mst", UNDECLARED, "far", 40)]
    found += [Match("smartnoise", "mst", DECLARED, "duplicate", 40)]
    return tuple(found)
