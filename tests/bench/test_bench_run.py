"""`make bench` runs what there is, and the bench's page names it."""

from importlib.util import find_spec

from bench.cells import ROOT
from bench.run import STEPS


def test_every_step_exists_and_is_on_the_page() -> None:
    page = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    for step in STEPS:
        assert find_spec(step) is not None
        assert f"`python -m {step}`" in page
