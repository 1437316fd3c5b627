"""Every known bug of published code, planted in ours: one of our checks must catch it, and pass without it.

| bug | check | of |
| --- | --- | --- |
| standard deviation used as the multiplier | noise, event (slow: audit) | training |
| each tensor clipped by itself; a layer's uses as layers | joint norm | training |
| the batch clipped as a whole | joint norm, neighbours | training |
| clip norm doubled | joint norm (slow: audit; clipping of dp-vae) | training, conformance |
| rows that are not finite kept | non-finite, padding | training |
| composition inside of subsampling | event | training |
| half of the steps charged by the plan | event | training |
| steps after the kept checkpoint not charged | charges of dp-vae | conformance |
| batches of a fixed size, shuffled epochs, with replacement, cut off | sampler | training |
| noise used again in every step, or by every tensor; one tensor without | noise | training |
| encoder without noise | noise first, of dp-vae | conformance |
| bounds from rows, categories from rows | shapes, of independent | conformance |
| integer codes in place of one-hot | sensitivity, of independent (slow: of dp-merf) | conformance |
| a subsample's counts scaled up to all rows | sensitivity, of independent | conformance |
| ties broken by value, or by place after coarse noise | choices | mechanisms |
| the critic that is asked is the one that learns | slow: asked leaves no trace | gs-wgan |
| critics that share a mean | slow: row reaches its critic alone | gs-wgan |
| a seed in the artefact | no seed inside | conformance |
| a training row in the artefact | no rows inside | conformance |
| the exact number of rows in the artefact | noise first, of independent | conformance |

Those of gs-wgan are slow here; its own tests plant them as well. Bugs of single releases and choices of `mixture`, of
boosting's game and of slices are planted beside their own tests (`test_privacy_counts`, `test_privacy_choice`,
`test_privacy_train`, `test_privacy_game`, `boosting/test_game`, `test_gs_wgan`), and whole broken methods in
`auditing/test_conformance`.
"""

import inspect
from collections.abc import Callable, Iterator

import method_checks as methods
import planted_methods as method
import planted_training as training
import pytest
import training_checks as core

from understudy.auditing.conformance_checks import FailedError
from understudy.auditing.trial import Trial
from understudy.privacy import Streams
from understudy.synthesizers.api import method_module
from understudy.synthesizers.gs_wgan import game
from understudy.training import loop

Plant = Callable[[pytest.MonkeyPatch], None]
Check = Callable[[], object]
CAUGHT_BY = (AssertionError, FailedError)
conforms = methods.conforms

MUTATIONS: list[tuple[Plant, Check]] = [
    (training.deviation_for_multiplier, core.check_noise),
    (training.deviation_for_multiplier, core.check_event),
    (training.clip_by_tensor, core.check_joint_norm),
    (training.clip_without_cross_term, core.check_joint_norm),
    (training.clip_the_batch, core.check_joint_norm),
    (training.clip_the_batch, core.check_neighbours),
    (training.clip_doubled, core.check_joint_norm),
    (training.keep_nan, core.check_non_finite),
    (training.keep_nan, core.check_padding),
    (training.compose_inside_sampling, core.check_event),
    (training.charge_half_the_steps, core.check_event),
    (training.fixed_batches, core.check_sampler),
    (training.shuffled_epochs, core.check_sampler),
    (training.with_replacement, core.check_sampler),
    (training.cut_batches, core.check_sampler),
    (training.cut_batches, core.check_nothing_cut),
    (training.reuse_noise, core.check_noise),
    (training.share_noise, core.check_noise),
    (training.leave_noise_out, core.check_noise),
    (method.encoder_without_noise, conforms("dp-vae", "check_answers_only")),
    (method.fewer_steps_charged, conforms("dp-vae", "check_charges")),
    (method.bounds_from_rows, conforms("independent", "check_shapes")),
    (method.categories_from_rows, conforms("independent", "check_shapes")),
    (method.codes_for_one_hot, conforms("independent", "check_sensitivity")),
    (method.subsample_scaled_up, conforms("independent", "check_sensitivity")),
    (method.seed_inside, conforms("independent", "check_no_seed")),
    (method.row_inside, conforms("independent", "check_no_row")),
    (method.row_count_inside, conforms("independent", "check_answers_only")),
    (method.ties_by_value, methods.check_choices),
    (method.ties_of_coarse_noise, methods.check_choices),
]
SLOW: list[tuple[Plant, Check]] = [
    (method.asked_critic_learns, methods.check_asked_leaves_no_trace),
    (method.critics_share_a_mean, methods.check_row_reaches_its_critic_alone),
    (training.deviation_for_multiplier, core.check_audit),
    (training.clip_doubled, core.check_audit),
    (training.clip_doubled, conforms("dp-vae", "check_clipping")),
    (method.codes_for_one_hot_in_merf, conforms("dp-merf", "check_sensitivity")),
]


@pytest.fixture(autouse=True)
def compile_anew() -> Iterator[None]:
    """A planted step must not be answered from what was compiled without it, nor be left behind for others."""
    kinds = (loop._scan.clear_cache, core._compiled.cache_clear, game.play.clear_cache)
    for clear in kinds:
        clear()
    yield
    for clear in kinds:
        clear()


def named(mutation: tuple[Plant, Check]) -> str:
    return " - ".join(part.__name__ for part in mutation)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=named)
def test_a_planted_bug_is_caught(mutation: tuple[Plant, Check], monkeypatch: pytest.MonkeyPatch) -> None:
    plant, check = mutation
    plant(monkeypatch)
    with pytest.raises(CAUGHT_BY):
        check()


@pytest.mark.slow
@pytest.mark.parametrize("mutation", SLOW, ids=named)
def test_a_planted_bug_is_caught_by_a_longer_check(mutation: tuple[Plant, Check], monkeypatch) -> None:
    plant, check = mutation
    plant(monkeypatch)
    with pytest.raises(CAUGHT_BY):
        check()


# The training core's own checks pass on it in tests/training, those of critics in test_gs_wgan.
HONEST = {check.__name__: check for _, check in MUTATIONS if check.__module__ == methods.__name__}


@pytest.fixture(scope="module")
def trials() -> dict[str, Trial]:
    """One trial a method for all checks that pass."""
    return {check.method: Trial(method_module(check.method)) for check in HONEST.values() if hasattr(check, "method")}


@pytest.mark.parametrize("name", HONEST)
def test_the_same_check_passes_without_the_bug(name: str, trials: dict[str, Trial]) -> None:
    check = HONEST[name]
    check(trials[check.method]) if hasattr(check, "method") else check()


@pytest.mark.slow
@pytest.mark.parametrize("check", list(dict.fromkeys(check for _, check in SLOW)), ids=lambda check: check.__name__)
def test_the_longer_check_passes_without_the_bug(check: Check) -> None:
    check()


def test_choices_with_the_operating_system_s_noise_have_their_chances() -> None:
    methods.check_choices(Streams.from_entropy(), draws=1500)


def test_every_bug_is_in_the_table() -> None:
    planted = set()
    for module in (training, method):
        own = [found for found in vars(module).values() if getattr(found, "__module__", "") == module.__name__]
        planted |= {f.__name__ for f in own if list(inspect.signature(f).parameters) == ["patch"]}
    assert planted == {plant.__name__ for plant, _ in MUTATIONS + SLOW}
