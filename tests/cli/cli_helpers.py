"""The tiny table that all command tests share, and ways to run a command."""

import os
import sys
from pathlib import Path

import numpy as np

SECRET = "zqxsecret77"
SCHEMA = """\
rows: 400
label: ill
columns:
  person: {kind: id}
  age: {kind: integer, low: 0, high: 99}
  town: {kind: categorical, values: [Alm, Brock, Cray], missing: true}
  weight: {kind: real, low: 30, high: 150, resolution: 0.5, missing: true}
  joined: {kind: datetime, low: 2020-01-01, high: 2022-12-31, resolution: day}
  ill: {kind: boolean}
  notes: {kind: text}
"""
HEADER = "person,age,town,weight,joined,ill,notes"
ROW = f"1,40,Alm,70.5,2021-03-04,true,{SECRET}"


def tiny_rows(count: int = 400) -> str:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, count)
    town = rng.choice(["Alm", "Brock", "Cray", ""], count, p=[0.6, 0.25, 0.1, 0.05])
    weight = np.round((60 + age / 5 + rng.normal(0, 8, count)) * 2) / 2
    day = np.datetime64("2020-01-01") + rng.integers(0, 1096, count)
    ill = rng.random(count) < age / 120
    rows = zip(age, town, weight, day, ill, strict=True)
    lines = [f"{i},{a},{t},{w},{d},{str(bool(s)).lower()},{SECRET} {i}" for i, (a, t, w, d, s) in enumerate(rows, 1)]
    return "\n".join([HEADER, *lines]) + "\n"


def command(*arguments: object, first: str = "pass") -> list[str]:
    """The command for a process of its own; `first` is Python that runs before it.

    A process that was started in the background inherits deaf ears for Ctrl-C: this one hears it in any case.
    """
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listen}\n{first}\nfrom understudy.cli.main import main; main()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def left_over(folder: Path) -> set[str]:
    """Names in a folder, hidden ones too: a half-written file would show."""
    return set(os.listdir(folder))
