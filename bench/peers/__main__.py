"""Ours beside the peers: `python -m bench.peers`. Writes bench/results/<date>-peers.md, .json and .png.

All of it takes hours; a run that was broken off goes on with the same command, and `--datasets`, `--methods`, `--seeds`
choose a part.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from bench.cells import Method, ours, peer
from bench.peers.comparison import CELLS, RESULTS, compare
from understudy.synthesizers import api

DATASETS = ("adult", "cardio", "bank", "acs_excerpts", "intrusion", "titanic", "german_credit")
OURS = tuple(ours(name) for name in ("mixture", "mst", "aim", "independent", "dp-merf"))
PEERS = (
    *(peer("dpmm", method) for method in ("mst", "aim", "privbayes")),
    *(peer("smartnoise", method) for method in ("mst", "aim")),
    peer("datasynthesizer", "privbayes"),
)
SEEDS = (0, 1, 2, 3, 4)


def known() -> dict[str, Method]:
    """All methods that may be asked for: every one of ours, every peer's."""
    return {method.name: method for method in (*(ours(name) for name in api.METHODS), *PEERS)}


def without_environment(methods: tuple[Method, ...]) -> list[str]:
    """The peers among the methods whose environments were not made yet."""
    return sorted({method.runner for method in methods if not method.python.exists()})


def main(
    title: str = "Ours beside the peers",
    name: str = "peers",
    datasets: tuple[str, ...] = DATASETS,
    methods: tuple[str, ...] = tuple(method.name for method in (*OURS, *PEERS)),
    seeds: tuple[int, ...] = SEEDS,
) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=datasets, choices=DATASETS)
    parser.add_argument("--methods", nargs="+", default=methods, choices=known())
    parser.add_argument("--seeds", nargs="+", type=int, default=seeds)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="start nothing after this time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--cells", type=Path, default=CELLS, help="where finished cells are kept")
    parser.add_argument("--name", default=name, help="of the results' files, after the date")
    options = parser.parse_args()
    chosen = tuple(known()[method] for method in options.methods)
    if lacking := without_environment(chosen):
        parser.error(f"no environment; run python -m bench.peers.install {' '.join(lacking)}")
    page = compare(
        tuple(options.datasets),
        chosen,
        tuple(options.seeds),
        title=title,
        results=options.results,
        name=options.name,
        record=options.cells,
        epsilon=options.epsilon,
        minutes=options.minutes,
    )
    print(page)


if __name__ == "__main__":
    main()
