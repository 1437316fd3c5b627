"""Boosted models of images: values that depend on one image alone, one certificate, blends that lose their weight."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

import understudy as us
from understudy.boosting import distinguishers as kinds
from understudy.boosting import pictures
from understudy.boosting import pool as pools
from understudy.boosting.exact import UNIT
from understudy.boosting.game import play
from understudy.boosting.pool import Pool, make_pool
from understudy.cli.main import app
from understudy.errors import OptionError
from understudy.privacy import BoundedRange, Budget, Gaussian, Ledger, Streams
from understudy.synthesizers.api import fit
from understudy.table.table import Table

SCHEMA = us.Schema.loads("""
rows: 1500
label: digit
columns:
  digit: {kind: categorical, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
  scan: {kind: image, height: 8, width: 8}
""")
DIGITS = load_digits()
PIXELS = (DIGITS.images * 15).astype(np.uint8).reshape(-1, 64)
SMALL = {"features": 120, "batch": 100, "steps": 30, "latent": 4}
QUICK = {"rounds": 60, "pool_rows": 800}


def table_of(rows: slice | np.ndarray | list[int], schema: us.Schema = SCHEMA) -> Table:
    codes = {"digit": DIGITS.target[rows].astype(np.uint8), "scan": PIXELS[rows]}
    return Table.from_codes(schema, {name: codes[name] for name in [*schema.modelled, *schema.images]})


class HalfBlends:
    """A generator that is right half of the time; otherwise it lays two digits over each other."""

    rows = 1500

    def sample(self, n: int, rng: np.random.Generator, where: object = None) -> dict[str, np.ndarray]:
        first, second = rng.integers(len(PIXELS), size=(2, n))
        blended = rng.random(n) < 0.5
        mixed = (PIXELS[first].astype(int) + PIXELS[second]) // 2
        scan = np.where(blended[:, None], mixed, PIXELS[first]).astype(np.uint8)
        self.blended = blended
        return {"scan": scan, "digit": DIGITS.target[first].astype(np.uint8)}


@pytest.fixture(scope="module", autouse=True)
def short_lessons():
    """What networks know matters in one test alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "STEPS", 40)
        yield


@pytest.fixture(scope="module")
def pool() -> Pool:
    return make_pool([HalfBlends()], SCHEMA, 1500, np.random.default_rng(0))


@pytest.fixture(scope="module")
def model() -> us.Model:
    return fit(table_of(slice(0, 1500)), SCHEMA, method="dp-merf", epsilon=5.0, **SMALL)


@pytest.fixture(scope="module")
def boosted(model: us.Model) -> us.Model:
    return us.boost([model], table_of(slice(0, 1500)), epsilon=2.0, **QUICK)


@pytest.mark.parametrize("kind", ["classifiers", "marginals"])
def test_an_images_value_is_the_same_in_any_company(pool: Pool, kind: str):
    """Bit by bit: alone, at any place, among any others; and never above one."""
    family, rng = kinds.distinguishers(pool, kind), np.random.default_rng(1)
    rows = [*range(40), *rng.integers(1500, size=20).tolist()]
    alone = np.stack([family.sums(table_of([row])) for row in rows])
    assert ((alone >= 0) & (alone <= UNIT)).all()
    assert alone.std() > 0
    for size in (2, 13, 300):
        some = rng.integers(len(rows), size=size)
        assert (family.sums(table_of([rows[place] for place in some])) == alone[some].sum(axis=0)).all()


def test_the_pool_is_seen_as_real_images_are(pool: Pool):
    table = Table.from_codes(SCHEMA, pool.codes)
    equal = np.full(pool.size, 1 / pool.size)
    for kind in ("classifiers", "marginals"):
        family = kinds.distinguishers(pool, kind)
        np.testing.assert_allclose(family.sums(table) / UNIT / pool.size, family.expectations(equal), atol=1e-5)


def test_blends_lose_their_weight(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pictures, "STEPS", 300)
    generator = HalfBlends()
    pool = make_pool([generator], SCHEMA, 1500, np.random.default_rng(0))
    blended = generator.blended.copy()
    played = play(
        kinds.distinguishers(pool, "auto"), table_of(slice(0, 1500)), pool_size=pool.size, rows=1500, rounds=150,
        epsilon=0.1, streams=Streams.from_seed(0), ledger=Ledger(Budget(1e4, 1e-6)),
    )  # fmt: skip
    assert 0.45 < blended.mean() < 0.55
    assert played.weights[blended].sum() < 0.35


def test_clusters_are_of_a_rows_own_class(pool: Pool):
    clusters = pictures.clusters_of(pool)
    found = clusters.index(pool.codes)
    assert (found // clusters.centres.shape[1] == pool.codes["digit"]).all()
    assert len(np.unique(found)) > 50
    assert (clusters.centres == np.rint(clusters.centres)).all()


def test_numbers_of_huge_images_stay_exact():
    blocks = pictures.Blocks("scan", 1500, 1400, 1)
    white = np.full((1, 1500 * 1400), 255, dtype=np.uint8)
    assert blocks.shift > 0
    assert blocks.largest <= pictures.LARGEST
    assert blocks.sums({"scan": white}).max() == blocks.largest
    colour = pictures.Blocks("scan", 3, 2, 3)
    sums = colour.sums({"scan": np.arange(18, dtype=np.uint8)[None]})
    assert sums.tolist() == [[3, 12, 21, 30, 39, 48]]  # a block a pixel, its channels added up


def test_one_certificate_counts_both(model: us.Model, boosted: us.Model, tmp_path):
    events = [entry.event for entry in boosted.certificate.entries]
    assert events[0] == model.certificate.entries[0].event
    assert isinstance(events[0].event, Gaussian)
    assert (events[1].event.__class__, events[1].count) == (BoundedRange, 60)
    assert boosted.certificate.epsilon > model.certificate.epsilon
    boosted.save(tmp_path / "b.understudy")
    again = us.load(tmp_path / "b.understudy")
    one, two = (m.sample(30, seed=1) for m in (boosted, again))
    assert all((a == b).all() for a, b in zip(one["scan"], two["scan"], strict=True))
    assert one["scan"][0].shape == (8, 8)
    assert boosted.certificate.holds(release=True)


def test_fit_with_boosting_is_one_budget():
    made = us.fit(table_of(slice(0, 1500)), SCHEMA, method="dp-merf", epsilon=3.0, boost=QUICK, **SMALL)
    assert made.method == "boosted"
    assert made.certificate.epsilon == pytest.approx(3.0, rel=2e-3)
    assert made.certificate.epsilon <= 3.0 * (1 + 1e-6)
    assert made.released.settings["methods"] == ["dp-merf"]


def test_conditions_choose_the_label_and_nothing_else(boosted: us.Model):
    assert set(boosted.sample(40, where={"digit": [3, 4]}, seed=0)["digit"].astype(int)) == {3, 4}
    with pytest.raises(OptionError, match="'scan' is not a modelled column"):
        boosted.sample(3, where={"scan": 1})


def test_several_models_are_told_apart(model: us.Model):
    other = fit(table_of(slice(0, 1500)), SCHEMA, method="dp-merf", epsilon=5.0, **SMALL)
    both = make_pool([model.released, other.released], SCHEMA, 400, np.random.default_rng(0))
    assert kinds.classifiers(both).count == pictures.BLENDERS + 2
    made = us.boost([model, other], table_of(slice(0, 1500)), epsilon=1.0, **QUICK)
    assert made.released.settings["methods"] == ["dp-merf", "dp-merf"]


def test_images_without_a_label():
    schema = us.Schema.loads("rows: 1500\ncolumns: {scan: {kind: image, height: 8, width: 8}}")
    codes = {"scan": PIXELS[:1500]}
    made = us.fit(Table.from_codes(schema, codes), schema, method="dp-merf", epsilon=3.0, boost=QUICK, **SMALL)
    assert made.sample(5, seed=0)["scan"][4].shape == (8, 8)


def test_a_damaged_pool_is_refused(boosted: us.Model):
    released = boosted.released
    for wrong in (released.arrays()["pool.1"][:, :-1], released.arrays()["pool.1"][:-1]):
        with pytest.raises(ValueError):
            type(released).from_parts(released.schema, released.arrays() | {"pool.1": wrong}, released.facts())


def test_pools_of_large_images_are_small(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pools, "MOST_PIXELS", 1000)
    assert make_pool([HalfBlends()], SCHEMA, 1500, np.random.default_rng(0)).size == 15


def test_a_class_that_no_image_has_is_no_obstacle():
    only = SimpleNamespace(
        rows=100,
        sample=lambda n, rng, where=None: {"scan": PIXELS[:n], "digit": np.full(n, 7, dtype=np.uint8)},
    )
    lone = make_pool([only], SCHEMA, 60, np.random.default_rng(0))
    family = kinds.distinguishers(lone, "auto")
    assert family.sums(table_of(slice(0, 50))).max() <= 50 * UNIT
    assert np.isfinite(family.expectations(np.full(lone.size, 1 / lone.size))).all()


def test_from_the_command_line(model: us.Model, tmp_path):
    np.savez(tmp_path / "t.npz", scan=PIXELS[:1500].reshape(-1, 8, 8), digit=DIGITS.target[:1500])
    model.save(tmp_path / "one.understudy")

    def run(*arguments: object) -> str:
        said = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert said.exit_code == 0, said.output
        return said.stdout

    out = tmp_path / "out.understudy"
    asked = ("boost", tmp_path / "one.understudy", "-t", tmp_path / "t.npz", "-e", 1, "-o", out, "--rounds", 30)
    assert json.loads(run(*asked, "--pool-rows", 300, "--drs", "--json"))["certificate"]["method"] == "boosted"
    run("verify", out, "--release")
    run("sample", out, "-n", 20, "-o", tmp_path / "made.npz")
    run("sample", out, "-n", 50, "-o", tmp_path / "made.png")
    with np.load(tmp_path / "made.npz") as arrays:
        assert arrays["scan"].shape == (20, 8, 8)
    assert (tmp_path / "made.png").read_bytes()[:4] == b"\x89PNG"
