"""`make bench` runs what there is, and the bench's page names it."""

from importlib.util import find_spec

from bench.cells import ROOT
from bench.run import STEPS


def test_every_step_exists_and_is_on_the_page() -> None:
    page = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    for step in STEPS:
        assert find_spec(step) is not None
        assert f"`python -m {step}`" in page


def test_no_bench_of_a_paper_or_of_speed_is_forgotten() -> None:
    files = [file for room in ("papers", "speed") for file in (ROOT / "bench" / room).glob("*.py")]
    mains = {file for file in files if "argparse.ArgumentParser(" in file.read_text(encoding="utf-8")}
    # These are processes that a bench of their own starts.
    mains -= {ROOT / "bench" / "papers" / "dp_merf_images.py", ROOT / "bench" / "speed" / "dpsgd_opacus.py"}
    assert {f"bench.{file.parent.name}.{file.stem}" for file in mains} <= set(STEPS)
