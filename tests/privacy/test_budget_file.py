import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from understudy.errors import BudgetError, OptionError
from understudy.privacy import (
    ApproxDp,
    Budget,
    BudgetFile,
    Certificate,
    Gaussian,
    Ledger,
    NonPrivate,
    SelfComposed,
    budget_file,
    epsilon,
    gaussian_epsilon,
    noise_multiplier,
)

TOTAL = Budget(2.0, 1e-5)


def certificate(*events):
    ledger = Ledger(Budget(np.inf, 1e-6))
    for event in events:
        ledger.charge(event, "tables")
    return Certificate.issue(method="m", ledger=ledger, arrays={}, schema_digest="0" * 64, seeded=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.budget.json"


@pytest.fixture
def file(path):
    return BudgetFile.create(path, TOTAL)


def test_fits_add_up_on_curves(file, path):
    for _ in range(3):
        name = file.reserve([Gaussian(6.0)], "fit mixture")
        file.commit(name, certificate(Gaussian(6.0)))
    again = BudgetFile.load(path)
    assert again.events == (Gaussian(6.0),) * 3
    assert again.spent() == pytest.approx(gaussian_epsilon(6.0 / np.sqrt(3), 1e-5))
    assert again.spent() < 3 * gaussian_epsilon(6.0, 1e-5)
    assert again.head == file.head
    assert again.budget == TOTAL


def test_a_reservation_counts_before_the_fit_has_run(file, path):
    file.reserve([Gaussian(2.5)], "fit that crashes")
    again = BudgetFile.load(path)
    assert again.events == (Gaussian(2.5),)
    assert list(again.open_reservations.values()) == ["fit that crashes"]
    assert not again.remaining_allows([Gaussian(2.5)])
    before = path.read_bytes()
    with pytest.raises(BudgetError, match="fit too many"):
        again.reserve([Gaussian(2.5)], "fit too many")
    assert path.read_bytes() == before
    assert again.remaining_allows([Gaussian(10.0)])


def test_a_whole_budget_is_reserved_at_its_worst_and_settled_at_its_true_price(file):
    fit = Budget(1.5, 1e-6)
    name = file.reserve(fit, "fit aim")
    assert file.events == (ApproxDp(1.5, 1e-6),)
    assert not file.remaining_allows(fit)
    file.commit(name, certificate(Gaussian(8.0)))
    assert file.events == (Gaussian(8.0),)
    assert file.remaining_allows(fit)
    assert file.open_reservations == {}


def test_fits_follow_each_other_at_the_delta_that_the_file_proposes(file):
    for _ in range(3):
        name = file.reserve(Budget(0.6, file.fit_delta), "fit")
        file.commit(name, certificate(Gaussian(noise_multiplier(Budget(0.6, file.fit_delta)))))
    # Adding epsilons would have reached 1.8 by now; curves are at about 1.
    assert file.spent() < 1.1
    # The whole delta for one fit leaves nothing for those before it.
    with pytest.raises(BudgetError, match="delta of at most 1e-06"):
        file.reserve(Budget(0.1, TOTAL.delta), "greedy fit")


def test_a_fit_that_spent_more_than_reserved_is_written_down_and_held_back(file, path):
    name = file.reserve([Gaussian(10.0)], "fit")
    with pytest.raises(BudgetError, match="do not release"):
        file.commit(name, certificate(Gaussian(0.5)))
    assert BudgetFile.load(path).events == (Gaussian(0.5),)
    assert not BudgetFile.load(path).remaining_allows([Gaussian(1e3)])


def test_fits_without_privacy_cannot_be_counted(file):
    with pytest.raises(BudgetError):
        file.reserve([NonPrivate()], "exact fit")
    with pytest.raises(BudgetError, match="inf"):
        file.reserve(Budget(np.inf, 1e-6), "exact fit")


def test_reservations_are_settled_once(file):
    name = file.reserve([Gaussian(10.0)], "fit")
    file.commit(name, certificate(Gaussian(10.0)))
    for wrong in (name, "unknown"):
        with pytest.raises(OptionError, match="no open reservation"):
            file.commit(wrong, certificate(Gaussian(10.0)))


def test_files_are_made_once_and_must_exist(file, path, tmp_path):
    with pytest.raises(OptionError, match="exists already"):
        BudgetFile.create(path, TOTAL)
    with pytest.raises(OptionError, match="does not exist"):
        BudgetFile.load(tmp_path / "other.json")
    with pytest.raises(OptionError, match="finite"):
        BudgetFile.create(tmp_path / "other.json", Budget(np.inf, 1e-6))
    with pytest.raises(OptionError, match="purpose"):
        file.reserve([Gaussian(10.0)], "")


def test_two_programs_see_each_other(file, path):
    other = BudgetFile.load(path)
    file.reserve([Gaussian(2.5)], "first")
    with pytest.raises(BudgetError):
        other.reserve([Gaussian(2.5)], "second")
    other.reserve([Gaussian(20.0)], "third")
    assert len(other.events) == 2


def edit(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def lower_noise(data):
    data["records"][0]["events"][0]["noise_multiplier"] = 1e6


def forge_one_hash(data):
    lower_noise(data)
    data["records"][0]["hash"] = budget_file._hash(data["records"][0])


@pytest.mark.parametrize(
    "change",
    [
        lower_noise,
        forge_one_hash,
        lambda d: d["records"].pop(0),
        lambda d: d["records"].pop(1),
        lambda d: d["records"].reverse(),
        lambda d: d["records"].append(d["records"][0]),
        lambda d: d["header"].update(epsilon=50.0),
        lambda d: d["header"].update(format=7),
        lambda d: d["header"].pop("table"),
        lambda d: d["records"][0].update(purpose="something else"),
        lambda d: d["records"][0].update(note=1),
        lambda d: d["records"][0].update(id=[]),
        lambda d: d.update(records={}),
        lambda d: d.update(records=[1]),
        lambda d: d.clear(),
    ],
)
def test_tampering_is_seen(file, path, change):
    for purpose in ("one", "two", "three"):
        file.reserve([Gaussian(10.0)], purpose)
    edit(path, change)
    with pytest.raises(BudgetError, match="restore"):
        BudgetFile.load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000])
def test_what_is_no_budget_file_is_refused(path, text):
    path.write_text(text)
    with pytest.raises(BudgetError):
        BudgetFile.load(path)


def test_an_older_copy_is_seen_by_whoever_had_the_newer_one(file, path):
    file.reserve([Gaussian(10.0)], "one")
    old = path.read_bytes()
    file.reserve([Gaussian(10.0)], "two")
    path.write_bytes(old)
    with pytest.raises(BudgetError, match="gone or changed"):
        file.reserve([Gaussian(10.0)], "three")
    # Nobody else can know: this is what the docstring says that hashes cannot show.
    assert len(BudgetFile.load(path).events) == 1


def test_a_crash_while_writing_leaves_the_old_file(file, path, monkeypatch):
    file.reserve([Gaussian(10.0)], "one")
    before = path.read_bytes()

    def crash(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="no space"):
        file.reserve([Gaussian(10.0)], "two")
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.tmp")) + list(path.parent.glob(".*.tmp"))
    assert len(file.events) == 1
    file.reserve([Gaussian(10.0)], "two")
    assert len(BudgetFile.load(path).events) == 2


def test_a_killed_fit_counts_and_leaves_no_lock(path, file):
    code = f"""
import os, signal
from understudy.privacy import BudgetFile, Gaussian
file = BudgetFile.load({str(path)!r})
file.reserve([Gaussian(3.0)], "killed fit")
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert BudgetFile.load(path).events == (Gaussian(3.0),)
    file.reserve([Gaussian(10.0)], "next")
    assert len(file.events) == 2


def _reserve_many(path: Path, count: int) -> None:
    file = BudgetFile.load(path)
    for _ in range(count):
        file.reserve([Gaussian(30.0)], "fit")


def test_concurrent_reservations_are_all_kept(file, path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_reserve_many, args=(path, 10)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert BudgetFile.load(path).events == (Gaussian(30.0),) * 20


def test_a_held_lock_is_waited_for_and_then_refused(file, path, monkeypatch):
    monkeypatch.setattr(budget_file, "_LOCK_PATIENCE", 0.2)
    with (
        budget_file._locked(path),
        pytest.raises(BudgetError, match="another process"),
        budget_file._locked(path),
    ):
        pass


def test_a_long_history_stays_cheap(file):
    name = file.reserve([SelfComposed(Gaussian(100.0), 50)], "fit")
    file.commit(name, certificate(*[Gaussian(100.0)] * 50))
    assert file.spent() == epsilon([SelfComposed(Gaussian(100.0), 50)], 1e-5).value


def test_a_link_to_the_file_is_the_file(tmp_path):
    there, link = tmp_path / "there", tmp_path / "link"
    there.mkdir()
    book = BudgetFile.create(there / "budget.json", Budget(2.0, 1e-6))
    link.symlink_to(book.path)
    BudgetFile.load(link).reserve(Budget(1.5, 1e-7), "through the link")
    assert link.is_symlink()
    assert BudgetFile.load(book.path).spent() == pytest.approx(1.5, abs=1e-4)
    with pytest.raises(BudgetError):
        book.reserve(Budget(1.5, 1e-7), "by its own name")
