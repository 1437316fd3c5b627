"""`understudy plan` of methods that tell their charges: which uses of the rows, with which noise, on any screen."""

import io
import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from understudy.cli import screen
from understudy.privacy import epsilon
from understudy.privacy.events import event_from_dict
from understudy.synthesizers.api import METHODS

CHARGED = [name for name in METHODS if name not in ("mixture", "independent")]
USES = {
    "mst": ("choice of tables", "epsilon 0."),
    "aim": ("choice of tables, round 4", "of 20; chosen privately"),
    "dp-auto-gan": ("steps of the autoencoder", "steps of the critic", "1,000"),
    "dp-wgan": ("steps of the critic", "about 128 of 400 rows", "0.32"),
    "dp-cgan": ("steps of the critic",),
    "dp-vae": ("steps of the autoencoder",),
    "dp-syn": ("moments of every class's codes", "all classes cost as one"),
    "dp-merf": ("mean embedding", "random frequencies"),
    "gs-wgan": ("questions to one of 12 critics", "slices of about 33 rows"),
}


@pytest.mark.parametrize("method", CHARGED)
def test_plan_tells_charges_on_a_narrow_screen(run, here: SimpleNamespace, method: str, monkeypatch) -> None:
    monkeypatch.setattr(screen, "out", Console(width=60, file=io.StringIO()))
    result = run("plan", "-s", here.schema, "-m", method)
    assert result.exit_code == 0, result.output
    shown = screen.out.file.getvalue()
    assert max(map(len, shown.splitlines())) <= 60
    words = " ".join(shown.split())
    assert "one-way tables of 5 columns" in words
    for use in USES[method]:
        assert use in words


@pytest.mark.parametrize("method", CHARGED)
def test_planned_charges_spend_the_budget(run, here: SimpleNamespace, method: str) -> None:
    told = json.loads(run("plan", "-s", here.schema, "-m", method, "-e", 0.7, "--json").stdout)
    assert (told["method"], told["epsilon"], told["rows"]) == (method, 0.7, 400)
    events = [event_from_dict(charge["event"]) for charge in told["charges"]]
    assert 0.69 < epsilon(events, told["delta"]).value <= 0.7


def test_plan_follows_options_and_says_when_nothing_is_private(run, here: SimpleNamespace) -> None:
    arguments = ("plan", "-s", here.schema, "-m", "dp-vae", "--set", "steps=70")
    told = json.loads(run(*arguments, "--json").stdout)
    assert told["charges"][1]["event"]["count"] == 70
    free = run(*arguments, "-e", "inf")
    assert free.exit_code == 0
    assert "none" in free.stdout


def test_an_error_is_looked_for_where_noise_tells_it(run, here: SimpleNamespace) -> None:
    result = run("plan", "-s", here.schema, "-m", "mst", "--error", 0.1)
    assert result.exit_code == 2
    assert "use -m mixture, or leave --error out" in " ".join(result.stderr.split())
