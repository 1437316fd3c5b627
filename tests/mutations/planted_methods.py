"""Bugs of published implementations, planted in whole methods: functions that take pytest's monkeypatch."""

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from understudy.privacy.randomness import SeededNoise
from understudy.schema import Schema
from understudy.synthesizers import columns as columns_module
from understudy.synthesizers import independent
from understudy.synthesizers import one_way as one_way_module
from understudy.synthesizers.one_way import fine_cells
from understudy.table.table import Table

Patch = pytest.MonkeyPatch


def changed(module: ModuleType, old: str, new: str) -> ModuleType:
    """A private copy of a module with words of its source changed."""
    text = inspect.getsource(module)
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {module.__name__}: plant the bug anew"
    copied = ModuleType(module.__name__)
    exec(compile(text.replace(old, new), module.__file__, "exec"), copied.__dict__)
    return copied


def _counting(patch: Patch, new: str) -> None:
    """Another way of counting one-way tables, where `independent` counts them."""
    planted = changed(one_way_module, "np.bincount(c.index(block[name]), minlength=c.count)", new)
    patch.setattr(columns_module, "release_one_way", planted.release_one_way)


def codes_for_one_hot(patch: Patch) -> None:
    """A row adds its code where it should add 1: the sensitivity grows with the number of codes."""
    _counting(patch, "(np.bincount(c.index(block[name]), minlength=c.count) * np.arange(c.count))")


def subsample_scaled_up(patch: Patch) -> None:
    """Every second row counts twice: the mean of a sample times the number of rows."""
    _counting(patch, "2 * np.bincount(c.index(block[name])[::2], minlength=c.count)")


def codes_for_one_hot_in_merf(patch: Patch) -> None:
    """The published DP-MERF: categories as whole numbers in the embedding."""
    from understudy.synthesizers.dp_merf import features

    planted = changed(
        features,
        "into.columns[:, start : start + size] += _bincount(cell, len(self.factor), size)",
        "into.columns[:, start : start + size] += _bincount(cell, len(self.factor), size) * np.arange(size)",
    )
    patch.setattr(features.FeatureMap, "count", planted.FeatureMap.count)


def _cells_from_rows(patch: Patch, column: str, fact: Any) -> None:
    real = one_way_module.release_one_way

    def from_rows(table: Table, cells: Any, **options: Any) -> Any:
        known = table.schema.columns[column]
        found = known.model_copy(update=fact(known, table.codes(column)))
        seen = Schema(columns=table.schema.columns | {column: found}, label=table.schema.label, rows=table.schema.rows)
        inside = {name: np.minimum(table.codes(name), fine_cells(seen)[name].count - 1) for name in [column]}
        narrowed = Table(table.schema, {n: inside.get(n, table.codes(n)) for n in table.schema.modelled}, table.rows)
        return real(narrowed, fine_cells(seen), **options)

    patch.setattr(columns_module, "release_one_way", from_rows)


def bounds_from_rows(patch: Patch) -> None:
    """The upper bound of a number is the largest that occurs."""
    _cells_from_rows(patch, "age", lambda column, codes: {"high": max(int(codes.max()), column.low + 1)})


def categories_from_rows(patch: Patch) -> None:
    """The declared values are those that occur."""
    _cells_from_rows(
        patch,
        "degree",
        lambda column, codes: {"values": tuple(column.values[code] for code in np.unique(codes))},
    )


def _after_training(patch: Patch, change: Any) -> None:
    real = independent.train

    def train(config: Any, schema: Any, table: Any, budget: Any, *, streams: Any, progress: Any) -> tuple[Any, Any]:
        released, ledger = real(config, schema, table, budget, streams=streams, progress=progress)
        change(released, table, streams)
        return released, ledger

    patch.setattr(independent, "train", train)


def seed_inside(patch: Patch) -> None:
    """The model remembers what its streams were made of."""
    _after_training(patch, lambda released, _, streams: object.__setattr__(released, "rows", streams.init))


def row_inside(patch: Patch) -> None:
    """The model keeps one row as an example."""

    def keep(released: Any, table: Table, _: Any) -> None:
        released.fine["example"] = np.array([float(table.codes(name)[-1]) for name in table.schema.modelled])

    _after_training(patch, keep)


def row_count_inside(patch: Patch) -> None:
    """The model tells how many rows there were."""
    _after_training(patch, lambda released, table, _: object.__setattr__(released, "rows", table.rows))


def encoder_without_noise(patch: Patch) -> None:
    """The published DP-auto-GAN: noise for the decoder alone."""
    from understudy.training import autoencoder

    planted = changed(
        autoencoder,
        "gradient = numbers.noisy_mean(clipped, noise)",
        "gradient = numbers.noisy_mean(clipped, noise) | {name: {key: leaf / numbers.expected_batch "
        "for key, leaf in layer.items()} for name, layer in clipped.items() if name.startswith('encoder.')}",
    )
    patch.setattr(autoencoder, "make_step", planted.make_step)


def fewer_steps_charged(patch: Patch) -> None:
    """A method charges the steps up to the checkpoint that it keeps."""
    from understudy.synthesizers import dp_vae

    planted = changed(
        dp_vae,
        "ledger.charge(plan.event,",
        "import dataclasses\n    ledger.charge(dataclasses.replace(plan, steps=plan.steps - 2).event,",
    )
    patch.setattr(dp_vae, "train", planted.train)


# --- choices ---


def ties_by_value(patch: Patch) -> None:
    """The best score is taken, and the first of several: no noise decides."""
    patch.setattr(SeededNoise, "gumbel_argmax", lambda self, scores, scale: int(np.argmax(scores)))


def ties_of_coarse_noise(patch: Patch) -> None:
    """Noise in whole numbers ties often, and the first of the tied is taken: its place decides."""

    def coarse(self: SeededNoise, scores: np.ndarray, scale: float) -> int:
        return int(np.argmax(np.rint(scores + self._generator.gumbel(0.0, scale, len(scores)))))

    patch.setattr(SeededNoise, "gumbel_argmax", coarse)


# --- critics ---


def asked_critic_learns(patch: Patch) -> None:
    """The critic that is asked is the one that is trained: its state tells how often it was asked."""
    from understudy.synthesizers.gs_wgan import game

    turn = 'turn = (state["step"] * game.taught + jnp.arange(game.taught)) % game.critics'
    planted = changed(game, turn, "turn = (asked + jnp.arange(game.taught)) % game.critics")
    patch.setattr(game, "play", planted.play)


def critics_share_a_mean(patch: Patch) -> None:
    """Rows are centred over all slices: a row reaches every critic."""
    from understudy.synthesizers.gs_wgan import game

    teach = "return critics.teach(game.lessons, some, mine, real, "
    planted = changed(game, teach, teach.replace("real, ", "real - real.mean(axis=(0, 1)), "))
    patch.setattr(game, "play", planted.play)
