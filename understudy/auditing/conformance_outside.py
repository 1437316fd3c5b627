"""What must hold of what leaves a method (words, errors, files, rows): functions that say what they found, or raise."""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from understudy.auditing.conformance_checks import FailedError, branches, leaves, need, same, transcripts_of
from understudy.auditing.grounds import ROWS, Ground, alike
from understudy.auditing.trial import BUDGET, OTHER_SEED, SEED, Trial
from understudy.errors import DataError, SchemaError
from understudy.privacy import Budget, NonPrivate, Streams
from understudy.schema import Schema
from understudy.synthesizers.api import Model
from understudy.table.frame import frame
from understudy.table.read import read_table

DRAWN = 40
FEWEST_CELLS = 4  # of a row that would be recognised by its bytes: fewer are found in any file
# A claim that so few games could refute: at a small epsilon, thousands would be needed to see half of the noise.
GAMES, GAME_CONFIDENCE, GAME_BUDGET = 200, 0.999, Budget(8.0, 1e-6)


def check_said(trial: Trial) -> str:
    """With the same answers, the same is said on every table, and the canary's values never are."""
    usual = trial.transcripts.usual
    for what, run in transcripts_of(trial, "far"):
        other = next((line for line in run.said if line not in usual.said), None)
        need(run.said == usual.said, f"{what}: other things are said{f' ({other!r})' if other else ''}")
    _no_secret(" ".join([*trial.base.said, *usual.said]), "what is said", trial.ground)
    return f"{len(usual.said)} lines, the same for all tables"


def _no_secret(text: str, where: str, ground: Ground) -> None:
    told = ground.secret is not None and (f"{ground.secret:g}" in text or str(ground.secret) in text)
    need(not told, f"{where} holds a cell of the table")
    need(re.search(rf"(?<![\d.]){ROWS}(?![\d.])", text) is None, f"{where} holds the number of rows")


class _Broken:
    """A source of noise that fails, as hardware may."""

    def __getattr__(self, name: str) -> Any:
        raise DataError("the noise source is broken")


def check_errors(trial: Trial) -> str:
    """A fit that is broken off in the middle says nothing of the rows, in its error or in those behind it."""
    streams = dataclasses.replace(Streams.from_seed(SEED), noise=_Broken())
    try:
        trial.module.train(
            trial.config, trial.schema, trial.table, BUDGET, streams=streams, progress=lambda *_, **__: None
        )
    except Exception as error:
        text, link = "", error
        while link is not None:
            text += f" {link}"
            link = link.__cause__ or link.__context__
        _no_secret(text, "an error", trial.ground)
        return "a fit that is broken off names no cell and no number of rows"
    raise FailedError("a broken source of noise was not noticed: is there any noise?")


def check_no_row(trial: Trial) -> str:
    """Neither the canary nor a stretch of a column is in the file, in any usual type."""
    found = traces_of_rows(trial.members, trial.ground.usual, trial.ground.secret)
    need(not found, f"the model file holds {', '.join(found[:3])}")
    return f"{len(trial.members):,} bytes searched for rows and stretches of columns"


def traces_of_rows(data: bytes, codes: Mapping[str, np.ndarray], secret: float | None = None) -> list[str]:
    """What of a table can be found in some bytes: a secret cell, images, rows, and stretches of columns.

    >>> from understudy.auditing.grounds import TABLES
    >>> traces_of_rows(TABLES.usual["age"].astype("<f4").tobytes(), TABLES.usual)
    ['a stretch of age']
    """
    found = []
    if secret is not None:
        forms = [str(secret).encode(), *(np.array(secret, kind).tobytes() for kind in ("<f4", "<f8"))]
        found += ["the canary's rarest cell"] * any(form in data for form in forms)
    for name, column in codes.items():
        if column.ndim > 1 and any(form in data for image in column[-8:] for form in _image_forms(image)):
            found.append(f"an image of {name}")
    codes = {name: column for name, column in codes.items() if column.ndim == 1}
    rows = np.stack([np.nan_to_num(column).astype(float) for column in codes.values()], axis=1)
    for kind in ("u1", "<u2", "<i4", "<i8", "<f4", "<f8"):
        whole = rows.clip(0, 255 if kind == "u1" else None)[-8:] if len(codes) >= FEWEST_CELLS else []
        if any(row.astype(kind).tobytes() in data for row in whole):
            found.append("a whole row")
        for name, column in zip(codes, rows.T, strict=True):
            for first in range(0, len(column) - 12, 12):
                window = column[first : first + 12]
                if (
                    len(np.unique(window)) > 2
                    and window.clip(0, 255 if kind == "u1" else None).astype(kind).tobytes() in data
                ):
                    found.append(f"a stretch of {name}")
    text = re.sub(rb"\s", b"", data)
    for name, column in codes.items():
        listed = json.dumps(
            [int(c) if float(c).is_integer() else float(c) for c in column[:8] if c == c], separators=(",", ":")
        )
        if listed.encode()[1:-1] in text:
            found.append(f"a stretch of {name}")
    return list(dict.fromkeys(found))


def _image_forms(image: np.ndarray) -> list[bytes]:
    """An image of several shades as its bytes, as numbers, and as shares of full brightness."""
    if len(np.unique(image)) < 4:
        return []
    kinds = ("u1", "<i4", "<i8", "<f4", "<f8")
    shares = [(image / 255).astype(kind) for kind in ("<f4", "<f8")]
    return [form.tobytes() for form in (*(image.astype(kind) for kind in kinds), *shares)]


def check_no_seed(trial: Trial) -> str:
    """Neither the seed nor what the streams were made of is in the file, as text or as bytes."""
    streams = Streams.from_seed(SEED)
    state = streams.sampling.bit_generator.state["state"]
    for what, secret in (("the seed", SEED), ("streams.init", streams.init), ("a state", state["state"])):
        need(str(secret).encode() not in trial.members, f"the model file holds {what}")
        forms = [
            secret.to_bytes(size, order) for size in (4, 8, 16) for order in ("little", "big") if secret < 256**size
        ]
        forms += [np.array(float(secret), kind).tobytes() for kind in ("<f4", "<f8")]
        need(not any(form in trial.members for form in forms), f"the model file holds {what}")
    return "neither seed, nor init, nor a generator's state"


def check_repeatable(trial: Trial) -> str:
    """The same streams give the same model, others give another."""
    again, other = trial.run(trial.table), trial.run(trial.table, seed=OTHER_SEED)
    usual = trial.base.arrays
    need(all(same(usual[name], array) for name, array in again.arrays.items()), "the same streams give another model")
    need(not all(same(usual.get(n), array) for n, array in other.arrays.items()), "other streams give the same model")
    return "the same bit for bit with the same streams, another model with others"


# --- the model ---


def check_file(trial: Trial) -> str:
    """What comes back from the file has the same arrays and samples the same rows; rows have the schema's form."""
    parts = trial.parts
    back = trial.module.Released.from_parts(parts.schema, parts.arrays, parts.facts)
    drawn = [_drawn(released) for released in (trial.base.released, back)]
    need(all(same(drawn[0][name], column) for name, column in drawn[1].items()), "the file's model draws other rows")
    arrays = {name: np.asarray(array) for name, array in back.arrays().items()}
    need(set(arrays) == set(trial.base.arrays), "the file's model has other arrays")
    need(all(same(trial.base.arrays[name], array) for name, array in arrays.items()), "arrays come back changed")
    _check_form(trial.base.released, trial.schema)
    need(isinstance(trial.base.released.rows, int) and trial.base.released.rows >= 1, "rows must be a whole number")
    return f"{len(arrays)} arrays come back as they were, and so do the rows drawn from them"


def _drawn(released: Any, count: int = DRAWN) -> dict[str, np.ndarray]:
    return released.sample(count, np.random.default_rng(3), None)


def _check_form(released: Any, schema: Schema) -> None:
    codes = _drawn(released)
    wanted = {*schema.modelled, *schema.images}
    need(set(codes) == wanted, "sample must give codes for exactly the modelled columns, and images where there are")
    lengths = {len(column) for column in codes.values()}
    need(lengths == {DRAWN}, f"sample(n) must give n rows in every column, got {sorted(lengths)} for {DRAWN}")
    need(read_table(frame(schema, codes), schema).notes == {}, "sampled rows lie outside of the schema's bounds")


def check_infinite(trial: Trial) -> str:
    """Without privacy the same code runs, charges NonPrivate alone, and its certificate promises nothing."""
    run = trial.run(trial.table, budget=Budget(math.inf, BUDGET.delta))
    kinds = {type(leaf) for event in run.ledger.events for branch in branches(event) for leaf in leaves(branch)}
    need(kinds == {NonPrivate}, "with epsilon=inf every charge must be NonPrivate")
    need(math.isinf(trial.certificate(run).epsilon), "with epsilon=inf the certificate must promise nothing")
    _check_form(run.released, trial.schema)
    return "runs, charges NonPrivate, promises nothing"


def check_odd_tables(trial: Trial) -> str:
    """One row; constant columns with missing cells and a class without rows: fits, and rows of the schema's form."""
    last = list(trial.ground.extremes.values())[-1]
    tables = {"one row": alike(trial.ground.canary, 1), "one kind of row": alike(last, ROWS)}
    for what, codes in tables.items():
        try:
            _check_form(trial.run(trial.ground.table(codes)).released, trial.schema)
        except FailedError as error:
            raise FailedError(f"{what}: {error}") from None
        except SchemaError:  # the method does not take this schema, whatever the table
            raise
        except Exception as error:
            raise FailedError(f"{what}: ended with {type(error).__name__}: {error}") from None
    return f"{len(tables)} odd tables fit, and give rows of the schema's form"


def check_game(trial: Trial) -> str:
    """GAMES fits with a row and as many without it: no lower bound on epsilon from them passes the claim."""
    from understudy.auditing import scores
    from understudy.auditing.canaries import pair_from_schema

    pair = pair_from_schema("duplicate", trial.schema, ROWS)
    worlds = {world: pair.table(world) for world in (True, False)}
    unnoised = {w: trial.run(table, budget=Budget(math.inf, BUDGET.delta)).arrays for w, table in worlds.items()}
    rng = np.random.default_rng(0)
    made, certificate = [], trial.certificate(trial.run(worlds[False], budget=GAME_BUDGET))
    for number in range(GAMES):
        for world, table in worlds.items():
            run = trial.run(table, seed=2 * number + world, budget=GAME_BUDGET)
            model = Model(trial.schema, trial.module.NAME, {}, certificate, run.released)
            readings = scores.read(model, pair, draws=4 * ROWS, rng=rng)
            readings[scores.MODEL]["along what the row changes without noise"] = _along(run.arrays, unnoised)
            made.append(scores.Run(world, readings))
    gaussian = scores.all_gaussian(run.ledger.events)
    shown = scores.judge(made, GAME_BUDGET.delta, confidence=GAME_CONFIDENCE, gaussian=gaussian)
    bounds = [bound for one in shown for bound in one.bounds if gaussian or bound.mu is None]
    found, ceiling = max(b.epsilon for b in bounds), max(b.ceiling for b in bounds)
    need(found <= certificate.epsilon, f"epsilon is at least {found:.3g}, and {certificate.epsilon:.3g} is claimed")
    return (
        f"{2 * GAMES} fits show {found:.3g} at least of {certificate.epsilon:.3g}, and could have shown {ceiling:.3g}"
    )


def _along(arrays: Mapping[str, np.ndarray], unnoised: Mapping[bool, Mapping[str, np.ndarray]]) -> float:
    """How far a model's arrays lie in the direction in which the row moves them where there is no noise.

    The best score there is for a sum with Gaussian noise. Arrays whose shape follows from released numbers are left
    out where they differ.
    """
    total = 0.0
    for name, array in arrays.items():
        pair = [unnoised[world].get(name) for world in (True, False)]
        if array.dtype.kind == "f" and all(one is not None and one.shape == array.shape for one in pair):
            total += float(np.vdot(array.astype(float), pair[0].astype(float) - pair[1]))
    return total
