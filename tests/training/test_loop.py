"""The loop: what repeats, what is told, and how it ends."""

import jax.numpy as jnp
import numpy as np
import pytest
import training_checks as checks

from understudy.privacy import Streams
from understudy.training import loop
from understudy.training.dpsgd import DpSgd
from understudy.training.noise import normals

PLAN = DpSgd(rate=0.5, steps=80, clip=1.0, noise_multiplier=1.0, expected_batch=4.0)
CODES = np.zeros((8, 1), dtype=np.uint8)


def counting(numbers, state, codes, present, noise_key, key):
    """Grows by a factor of a thousand a step if told to: overflows after a dozen."""
    noisy = numbers.noisy_mean({"w": jnp.zeros(3)}, noise_key)["w"]
    return {"step": state["step"] + 1, "w": state["w"] * state["growth"] + noisy, "growth": state["growth"]}


def start(growth=1.0):
    return {"step": jnp.zeros((), jnp.int32), "w": jnp.ones(3), "growth": jnp.float32(growth)}


def run(progress=lambda *_: None, *, growth=1.0, seed=1, **more):
    streams = Streams.from_entropy() if seed is None else Streams.from_seed(seed)
    return loop.run(PLAN, counting, start(growth), CODES, streams=streams, progress=progress, stage="fit", **more)


def test_seeded_runs_repeat_and_others_differ():
    assert np.array_equal(run()["w"], run()["w"])
    assert not np.array_equal(run()["w"], run(seed=2)["w"])
    assert not np.array_equal(run(seed=None)["w"], run(seed=None)["w"])


def test_progress_ends_at_one_with_the_epsilon_so_far():
    told, kept = [], []
    run(
        lambda *words: told.append(words),
        note=lambda steps: f"epsilon {PLAN.spent(steps, 1e-5):.2f}",
        keep=lambda done, state: kept.append((done, int(state["step"]))),
    )
    assert told[0] == ("fit", 0.0, "epsilon 0.00")
    assert told[-1] == ("fit", 1.0, f"epsilon {PLAN.spent(80, 1e-5):.2f}")
    assert len(told) > 10
    assert kept[-1] == (80, 80)
    assert all(done == step for done, step in kept)


def test_overflow_ends_with_the_last_good_state_and_a_warning():
    with pytest.warns(UserWarning, match="numbers overflowed.*stays charged"):
        state = run(growth=1000.0)
    assert np.isfinite(state["w"]).all()
    assert 0 < int(state["step"]) < PLAN.steps


def test_interrupts_end_the_run_with_nothing_returned():
    seen = []

    def stop(stage, done, note=""):
        seen.append(done)
        if done > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(stop)
    assert seen[-1] < 0.6


def test_a_table_without_rows_gives_noise():
    state = loop.run(
        PLAN, counting, start(), CODES[:0], streams=Streams.from_seed(1), progress=lambda *_: None, stage="fit"
    )
    assert int(state["step"]) == PLAN.steps
    assert np.isfinite(state["w"]).all()


def test_unseeded_noise_never_repeats():
    runs = [np.asarray(checks.recorded(checks.PLAN, None)["history"]["w"]) for _ in range(2)]
    drawn = np.concatenate(runs).reshape(2 * checks.PLAN.steps, -1)
    assert len(np.unique(drawn, axis=0)) == len(drawn), "a step has the noise of another"
    # Of so many float32 numbers one in a thousand is another's equal by chance.
    assert len(np.unique(drawn)) > 0.99 * drawn.size, "noise is used twice"


def test_noise_is_drawn_ahead_from_each_step_s_own_key(monkeypatch):
    """Several steps at once give what steps one by one give, and what keys inside the steps would."""
    whole = run()["w"]
    monkeypatch.setattr(loop, "NORMALS_AHEAD", 1)
    loop._scan.clear_cache()
    assert np.array_equal(run()["w"], whole)
    monkeypatch.setattr(loop, "_noise_size", lambda *_: 64)
    monkeypatch.setattr(type(PLAN.numbers), "normals", lambda self, keys, size: keys)
    monkeypatch.setattr(type(PLAN.numbers), "noisy_mean", drawn_inside)
    loop._scan.clear_cache()
    assert np.allclose(run()["w"], whole, rtol=1e-5, atol=1e-5)
    monkeypatch.undo()
    loop._scan.clear_cache()


def drawn_inside(self, clipped, key):
    return {"w": (clipped["w"] + self.noise_std * normals(key, 64)[:3]) / self.expected_batch}


def test_a_step_that_asks_for_noise_twice_is_refused():
    def greedy(numbers, state, codes, present, noise, key):
        return counting(numbers, counting(numbers, state, codes, present, noise, key), codes, present, noise, key)

    with pytest.raises(ValueError, match="exactly once"):
        loop.run(PLAN, greedy, start(), CODES, streams=Streams.from_seed(1), progress=lambda *_: None, stage="fit")


def test_too_little_noise_is_refused():
    with pytest.raises(ValueError, match="at least 3 normals"):
        PLAN.numbers.noisy_mean({"w": jnp.zeros(3)}, jnp.zeros(2))
