"""The conformance suite passes methods that keep to the contract, and fails each of a row of broken ones by name.

The honest method is the worked example of docs/add-a-method.md, taken from the page itself; each broken one is that
with a few words changed.
"""

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from typer.testing import CliRunner

from understudy.auditing.conformance import CANNOT_TELL, CHECKS, FAILED, PASSED, conform
from understudy.errors import OptionError
from understudy.synthesizers.api import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "add-a-method.md"
(SOURCE,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
QUICK = ("independent", "mixture")


def method(*changes: tuple[str, str]) -> ModuleType:
    """The page's method, with words changed."""
    text = SOURCE
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times on the page"
        text = text.replace(old, new)
    made = ModuleType("histograms")
    exec(compile(text, "histograms", "exec"), made.__dict__)
    return made


def test_the_page_s_method_conforms():
    found = conform(method())
    assert (found.failed, found.unknown) == ((), ())
    assert [check.name for check in found.checks] == [check.name for check in CHECKS if not check.thorough]
    assert all(check.why and check.remedy and check.found for check in found.checks)


def test_every_check_is_on_the_page():
    rows = " ".join(re.findall(r"^\| ([a-z ,(`)-]+) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert all(check.name in rows for check in CHECKS)


COUNTED = "np.bincount(c.index(table.codes(name)), minlength=c.count)"
SPLIT = "    ends = "  # the first line after the noise
DONE = '    progress("counting", 1.0)\n'
ROWS = "rows = max(round(float(np.median([count.sum() for count in counts]))), 1)"
MADE = "return Released(schema, counts, rows), ledger"
MULTIPLIER = "noise_multiplier=noise_multiplier(budget),\n        streams"
PAID = """    from understudy.privacy import Gaussian, NonPrivate
    paid = noise_multiplier(budget)
    ledger.charge(Gaussian(paid) if paid else NonPrivate(), "x")
"""
WORD = "    floor: added to every count, so that no declared value is impossible.\n"
ELSEWHERE = ("ledger=ledger", "ledger=Ledger(Budget(math.inf, 1e-6))")
Changes = list[tuple[str, str]]


def noise_over(factor: int) -> Changes:
    """Charged in full, drawn with a fraction of it."""
    return [(MULTIPLIER, MULTIPLIER.replace("(budget)", f"(budget) / {factor}")), ELSEWHERE, (SPLIT, PAID + SPLIT)]


# What was changed, and the check that must fail for it.
BROKEN: dict[str, tuple[str, Changes]] = {
    "bounds from rows": ("shapes", [(COUNTED, "np.bincount(c.index(table.codes(name)))")]),
    "columns from rows": (
        "shapes",
        [("= fine_cells(schema)", "= {n: c for n, c in fine_cells(schema).items() if table.codes(n).any()}")],
    ),
    "charged for, and not drawn": (
        "noise first",
        [(SPLIT, "    noisy = np.concatenate(exact).astype(float)\n" + SPLIT)],
    ),
    "noise left out of one column": ("noise first", [(DONE, DONE + "    counts[0] = exact[0] + config.floor\n")]),
    "exact number of rows": ("noise first", [(ROWS, "rows = table.rows")]),
    "half the noise": ("sensitivity", noise_over(2)),
    "charged to another ledger": ("charges", [ELSEWHERE]),
    "a larger budget": (
        "charges",
        [("    ledger = Ledger(budget)", "    budget = Budget(4 * budget.epsilon, 1e-6)\n    ledger = Ledger(budget)")],
    ),
    "sensitivity of one table": ("sensitivity", [("return math.sqrt(len(schema.modelled))", "return 1.0")]),
    "rows counted twice": ("sensitivity", [(COUNTED, "2 * " + COUNTED)]),
    "rows weighted by their codes": (
        "sensitivity",
        [(COUNTED, "c.index(table.codes(name)).sum() * (np.arange(c.count) == 0)")],
    ),
    "a row in the artefact": (
        "no rows inside",
        [
            (DONE, DONE + "    counts.append(np.array([table.codes(n)[-1] for n in schema.modelled]))\n"),
            (".items(), strict=True)", ".items())"),
        ],
    ),
    "a seed in the artefact": (
        "no seed inside",
        [(DONE, DONE + "    counts.append(np.array([streams.init]))\n"), (".items(), strict=True)", ".items())")],
    ),
    "a config that is not frozen": ("config", [("@dataclass(frozen=True, kw_only=True)", "@dataclass(kw_only=True)")]),
    "an option without a word": ("config", [(WORD, "")]),
    "noise from elsewhere": (
        "repeatable",
        [(SPLIT, "    noisy = np.concatenate(exact) + np.random.default_rng().normal(0, 30, len(noisy))\n" + SPLIT)],
    ),
    "progress that counts": ("said", [('("counting", 0.0)', '("counting", 0.0, f"{table.rows} rows")')]),
    "an error that quotes": (
        "errors",
        [
            ("    noisy = ", "    try:\n        streams.noise.words(1)\n    except Exception:\n" + 8 * " "
             + "raise ValueError(f'no noise for {table.codes(\"wage\")[-1]}')\n    noisy = "),
        ],
    ),
    "a part forgotten in the file": (
        "file",
        [('int(facts["rows"]))', "1)"), ("drawn = {}", "drawn, rng = {}, np.random.default_rng(self.rows)")],
    ),
    "one row is not expected": ("odd tables", [(SPLIT, "    assert table.rows > 1\n" + SPLIT)]),
    "epsilon=inf is not expected": (
        "without privacy",
        [(MULTIPLIER, "noise_multiplier=max(noise_multiplier(budget), 1.0),\n        streams")],
    ),
    "train with other names": (
        "contract",
        [("schema: Schema, table: Table, budget", "schema: Schema, rows: Table, budget")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", BROKEN)
def test_a_broken_method_fails_by_name(bug: str):
    check, changes = BROKEN[bug]
    found = conform(method(*changes))
    assert check in found.failed, [(c.name, c.outcome, c.found) for c in found.checks if c.outcome != PASSED]
    assert not found.ok


def test_a_schema_that_a_method_refuses_tells_nothing():
    start = "    ledger = Ledger(budget)"
    refusal = "    from understudy.errors import SchemaError\n    raise SchemaError('needs an image')\n"
    found = conform(method((start, refusal + start)))
    assert {"charges", "noise first", "sensitivity", "file"} <= set(found.unknown)
    assert all("needs an image" in check.found for check in found.checks if check.name in ("charges", "file"))


def test_nothing_is_run_where_the_contract_is_not_kept():
    module = method()
    del module.train
    found = conform(module)
    assert found.failed == ("contract",)
    assert {check.outcome for check in found.checks[1:]} == {CANNOT_TELL}
    assert conform(json).method == "json"  # a module that is no method at all is told by its name


def test_every_method_s_proof_is_outlined():
    text = (PAGE.parent / "guarantees.md").read_text(encoding="utf-8")
    outlines = text.split("## How each method's proof goes")[1].split("\n## ")[0]
    assert set(re.findall(r"\*\*`([a-z-]+)`\*\*", outlines)) - {"choose"} == set(METHODS)


@pytest.mark.parametrize("page", ["guarantees.md", "add-a-method.md"])
def test_commands_and_links_of_the_pages_exist(page: str):
    from understudy.cli.main import COMMANDS

    text = (PAGE.parent / page).read_text(encoding="utf-8")
    names = {command.__name__ for command in COMMANDS}
    assert set(re.findall(r"(?:^\$ |`)understudy (\w+)", text, flags=re.MULTILINE)) <= names
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (PAGE.parent / target).exists(), target


@pytest.mark.parametrize("name", QUICK)
def test_methods_of_counts_conform(name: str):
    found = conform(name)
    assert (found.failed, found.unknown) == ((), ()), found


def test_a_boosted_method_conforms():
    from understudy.boosting import method as boosting
    from understudy.synthesizers import independent

    boosted = boosting.boosted_method(independent, {"rounds": 10})
    looks = SimpleNamespace(
        NAME=boosted.NAME,
        SUMMARY=boosting.SUMMARY,
        Config=independent.Config,
        Released=boosting.Released,
        check=boosted.check,
        train=boosted.train,
    )
    found = conform(looks)
    assert (found.failed, found.unknown) == ((), ()), found


# --- images ---

IMAGE_SOURCE = (Path(__file__).parent / "image_means.py").read_text(encoding="utf-8")
NOISED = "    counts = np.maximum(noisy[:, -1]"  # the first line after the noise
BROKEN_IMAGES = {
    "sensitivity of one pixel": ("sensitivity", [("l2_sensitivity=FULL * math.sqrt(image.pixels + 1)",
                                                  "l2_sensitivity=FULL")]),
    "exact sums": ("noise first", [(NOISED, "    noisy = sums.astype(float)\n" + NOISED)]),
    "an image in the artefact": ("no rows inside", [('{"means": self.means', '{"seen": self.seen, "means": self.means'),
                                                    ("return Released(schema, means, counts), ledger",
                                                     "made = Released(schema, means, counts)\n    "
                                                     "object.__setattr__(made, 'seen', table.codes(name)[-1] / 255)\n"
                                                     "    return made, ledger")]),
    "images without their label": ("file", [("{self.schema.label: label.astype(np.uint8), name:", "{name:")]),
}  # fmt: skip


def image_method(*changes: tuple[str, str]) -> ModuleType:
    text = IMAGE_SOURCE
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
    made = ModuleType("image_means")
    exec(compile(text, "image_means", "exec"), made.__dict__)
    return made


def test_a_method_of_images_is_tried_on_images():
    found = conform(image_method())
    assert (found.failed, found.unknown) == ((), ()), found
    silent = conform(image_method(("IMAGES = True", "IMAGES = False")))
    assert {"charges", "noise first"} <= set(silent.unknown)


@pytest.mark.parametrize("bug", BROKEN_IMAGES)
def test_a_broken_method_of_images_fails_by_name(bug: str):
    check, changes = BROKEN_IMAGES[bug]
    found = conform(image_method(*changes))
    assert check in found.failed, [(c.name, c.outcome, c.found) for c in found.checks if c.outcome != PASSED]


def test_a_method_of_both_is_tried_on_both():
    both = image_method()
    tables = method()

    def train(config, schema, table, budget, *, streams, progress):
        room = both if schema.images else tables
        return room.train(tables.Config(), schema, table, budget, streams=streams, progress=progress)

    def from_parts(schema, arrays, facts):
        return (both if schema.images else tables).Released.from_parts(schema, arrays, facts)

    looks = SimpleNamespace(
        NAME="both", SUMMARY="both", IMAGES=True, Config=tables.Config, train=train,
        Released=SimpleNamespace(from_parts=from_parts),
    )  # fmt: skip
    found = conform(looks)
    assert (found.failed, found.unknown) == ((), ()), found
    told = next(check.found for check in found.checks if check.name == "shapes")
    assert "on tables: " in told
    assert "on images: 2 arrays" in told


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name not in QUICK])
def test_every_method_conforms(name: str):
    found = conform(name)
    assert found.failed == (), [(c.name, c.found) for c in found.checks if c.outcome == FAILED]


def test_a_game_catches_noise_that_is_too_small():
    """Where nothing else is looked at: half of the noise is seen by guessing alone, and the honest one is not."""
    from understudy.auditing.conformance import outcome_of
    from understudy.auditing.conformance_outside import check_game
    from understudy.auditing.trial import Trial

    honest, found = outcome_of(check_game, Trial(method()))
    assert honest == PASSED, found
    outcome, found = outcome_of(check_game, Trial(method(*noise_over(2))))
    assert outcome == FAILED
    assert "8 is claimed" in found


# --- the command ---


@pytest.fixture
def importable(tmp_path, monkeypatch):
    (tmp_path / "made_here").mkdir()
    (tmp_path / "made_here" / "__init__.py").write_text("")
    (tmp_path / "made_here" / "honest.py").write_text(SOURCE)
    (tmp_path / "made_here" / "broken.py").write_text(
        SOURCE.replace("return math.sqrt(len(schema.modelled))", "return 1.0")
    )
    (tmp_path / "made_here" / "torn.py").write_text("def train(:")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)


def test_the_command_tells_what_is_wrong(importable):
    from understudy.cli.main import app

    good = CliRunner().invoke(app, ["conform", "made_here.honest", "--json"])
    assert good.exit_code == 0
    assert json.loads(good.stdout)["ok"] is True
    bad = CliRunner().invoke(app, ["conform", "made_here.broken"])
    assert bad.exit_code == 1
    assert "sensitivity" in bad.stdout
    assert "L2 distance" in bad.stdout


def test_a_module_that_is_not_there(importable):
    sys.path.append(".")
    with pytest.raises(OptionError, match="importing it ended with SyntaxError"):
        conform("made_here.torn")
    with pytest.raises(OptionError, match=r"no module 'made_here.nowhere'.*PYTHONPATH"):
        conform("made_here.nowhere")
    with pytest.raises(OptionError, match="did you mean 'mixture'"):
        conform("mixtures")
