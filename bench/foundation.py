"""Our default against independent columns and a peer's MST: `python -m bench.foundation`, a short `bench.peers`.

smartnoise's MST runs too, and scores below dpmm's on ADULT: one peer stands for the method unless both are asked for.
"""

from __future__ import annotations

from bench.peers.__main__ import main

if __name__ == "__main__":
    main(
        title="Foundation comparison",
        name="foundation",
        datasets=("adult", "cardio", "bank", "acs_excerpts", "intrusion", "titanic"),
        methods=("mixture", "independent", "dpmm mst"),
        seeds=(0, 1, 2),
    )
