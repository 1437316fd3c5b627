"""What must hold of the training core, as functions that raise: run on the core, and on the core with a planted bug."""

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from understudy.privacy import Gaussian, PoissonSampled, SelfComposed, Streams
from understudy.progress import silent
from understudy.training import dpsgd, ghost, loop, nets
from understudy.training.dpsgd import DpSgd
from understudy.training.probe import canary_sums

NET = nets.Net.of([5, 4, 3, 1])
SPLIT = (nets.Net.of([5, 4, 2], hidden="tanh"), nets.Net.of([2, 4, 5], hidden="relu"))
EXAMPLES = 8
CLIP = 0.7
ALMOST_NEVER = 1e-6


@dataclass(frozen=True)
class Case:
    """A network and a loss: for the whole batch through taps, and for one example on its own."""

    name: str
    params: dict
    batched: object
    one: object
    extra: int  # numbers that an example has besides its row

    def batch(self, seed: int, scale: float = 1.0) -> jax.Array:
        return scale * jax.random.normal(jax.random.key(seed), (EXAMPLES, 5 + self.extra))


def score(params, x, tap=nets.untapped):
    return nets.apply(NET, [params[str(n)] for n in range(3)], x, tap)[:, 0]


def _autoencode(params, x, tap=nets.untapped):
    encoder, decoder = SPLIT
    latent = nets.apply(encoder, [params["e0"], params["e1"]], x[:, :5], tap, "e")
    # A draw for each example, as in a variational autoencoder.
    out = nets.apply(decoder, [params["d0"], params["d1"]], latent + 0.1 * x[:, 5:], tap, "d")
    return jnp.sum((out - x[:, :5]) ** 2, axis=1) + 0.5 * jnp.sum(latent**2, axis=1)


def _pair(params, x, tap=nets.untapped):
    """A real and a fake row: the same layers are used twice."""
    return score(params, x[:, 5:], tap) - score(params, x[:, :5], tap)


@lru_cache
def cases() -> dict[str, Case]:
    critic = nets.named(nets.init(NET, jax.random.key(1)))
    encoder, decoder = (nets.init(net, jax.random.key(2)) for net in SPLIT)
    coder = nets.named(encoder, "e") | nets.named(decoder, "d")

    def case(name, params, loss, extra):
        return Case(name, params, lambda p, x, tap: loss(p, x, tap), lambda p, row: loss(p, row[None])[0], extra)

    made = [
        case("wgan", critic, lambda p, x, tap=nets.untapped: -score(p, x, tap), 0),
        case("logistic", critic, lambda p, x, tap=nets.untapped: jnp.logaddexp(0.0, -score(p, x, tap)), 0),
        case("split", coder, _autoencode, 2),
        case("pair", critic, _pair, 5),
    ]
    return {one.name: one for one in made}


@lru_cache
def _compiled(kind, name: str):
    case = cases()[name]
    loss = case.one if kind is ghost.clipped_sum_by_example else case.batched
    return jax.jit(lambda batch, present, clip: kind(loss, case.params, batch, present, clip=clip))


def sums(name: str, batch, present=None, clip=CLIP):
    """The clipped sum of ghost.clipped_sum as it is now (a planted one included), as one vector."""
    present = jnp.ones(EXAMPLES) if present is None else jnp.asarray(present, dtype=jnp.float32)
    return flat(_compiled(ghost.clipped_sum, name)(batch, present, clip))


def sums_by_example(name: str, batch, present=None, clip=CLIP):
    present = jnp.ones(EXAMPLES) if present is None else jnp.asarray(present, dtype=jnp.float32)
    return flat(_compiled(ghost.clipped_sum_by_example, name)(batch, present, clip))


def flat(tree) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(tree)])


def alone(place: int) -> np.ndarray:
    return np.eye(EXAMPLES, dtype=np.float32)[place]


@lru_cache
def _gradient(name: str):
    case = cases()[name]
    return jax.jit(jax.vmap(jax.grad(case.one), in_axes=(None, 0)))


def gradients(name: str, batch) -> np.ndarray:
    """(examples, parameters), by plain differentiation."""
    found = _gradient(name)(cases()[name].params, batch)
    return np.stack([flat(jax.tree.map(lambda leaf, i=i: leaf[i], found)) for i in range(EXAMPLES)])


def check_joint_norm() -> None:
    """Each example moves the sum by its gradient scaled down to the clip norm, over all layers together."""
    for name, case in cases().items():
        for seed, scale in ((3, 1.0), (4, 30.0), (5, 0.01)):
            batch = case.batch(seed, scale)
            expected = gradients(name, batch)
            norms = np.linalg.norm(expected, axis=1)
            for place in (0, EXAMPLES - 1):
                found = sums(name, batch, alone(place))
                size = np.linalg.norm(found)
                assert size <= CLIP * (1 + 1e-6), f"{name}: norm {size} is above the clip norm"
                wanted = expected[place] * min(1.0, CLIP / norms[place])
                assert np.allclose(found, wanted, rtol=1e-3, atol=1e-4 * CLIP), f"{name}: not the clipped gradient"
                if norms[place] > 1.01 * CLIP:
                    assert size >= CLIP * 0.999, f"{name}: the bound is not reached"


def check_non_finite() -> None:
    """Rows that are not finite, or overflow, count as if they were not there."""
    for name, case in cases().items():
        batch = np.array(case.batch(6))
        kept = np.ones(EXAMPLES)
        for place, value in ((1, np.nan), (3, np.inf), (4, -np.inf), (6, 3e38)):
            batch[place] = value
            kept[place] = 0
        found = sums(name, jnp.asarray(batch))
        assert np.isfinite(found).all(), f"{name}: a bad row left a trace"
        assert np.array_equal(found, sums(name, jnp.asarray(batch), kept)), f"{name}: a bad row moved the sum"


def check_padding() -> None:
    """What stands in the place of padding does not matter; without rows the sum is zero."""
    for name, case in cases().items():
        present = np.array([1, 1, 0, 1, 0, 1, 1, 0])
        first, second = np.array(case.batch(7)), np.array(case.batch(7))
        second[present == 0] = np.nan
        assert np.array_equal(sums(name, jnp.asarray(first), present), sums(name, jnp.asarray(second), present))
        assert not sums(name, jnp.asarray(first), np.zeros(EXAMPLES)).any()


def check_neighbours() -> None:
    """A row that joins changes nobody else's part."""
    for name, case in cases().items():
        batch = case.batch(8, 5.0)
        others = np.array([1, 1, 1, 0, 1, 1, 1, 1])
        changed = jnp.asarray(np.where(others[:, None], batch, 100.0 * np.asarray(batch)))
        for place in np.flatnonzero(others):
            assert np.array_equal(sums(name, batch, alone(place)), sums(name, changed, alone(place)))
        moved = np.linalg.norm(sums(name, batch, np.ones(EXAMPLES)) - sums(name, batch, others))
        assert moved <= CLIP * (1 + 1e-5), f"{name}: a row moved the sum by {moved}"


PLAN = DpSgd(rate=0.25, steps=400, clip=0.5, noise_multiplier=1.5, expected_batch=10.0)
ROWS = 40
SHAPES = {"w": (8, 6), "b": (8,)}


def _zeros():
    return {name: jnp.zeros(shape) for name, shape in SHAPES.items()}


def record_step(numbers, state, codes, present, noise_key, key):
    """Reads nothing and keeps every noisy mean: what an empty batch gives."""
    noisy = numbers.noisy_mean(_zeros(), noise_key)
    history = jax.tree.map(lambda kept, new: kept.at[state["step"]].set(new), state["history"], noisy)
    return {"step": state["step"] + 1, "history": history}


def recorded(plan: DpSgd, seed: int | None = 1):
    history = {name: jnp.full((plan.steps, *shape), jnp.inf) for name, shape in SHAPES.items()}
    streams = Streams.from_entropy() if seed is None else Streams.from_seed(seed)
    codes = np.zeros((ROWS, 1), dtype=np.uint8)
    state = {"step": jnp.zeros((), dtype=jnp.int32), "history": history}
    # The buffer starts at infinity, which only the drawn steps overwrite: finiteness is not what is asked here.
    original, loop._finite = loop._finite, lambda state: True
    try:
        return loop.run(plan, record_step, state, codes, streams=streams, progress=silent, stage="recording")
    finally:
        loop._finite = original


def check_noise(seed: int = 1) -> None:
    """Every step has fresh Gaussian noise on every number, of the scale that is charged."""
    state = recorded(PLAN, seed)
    assert int(state["step"]) == PLAN.steps
    noise = {name: np.asarray(leaf, dtype=np.float64) for name, leaf in state["history"].items()}
    drawn = np.concatenate([leaf.reshape(PLAN.steps, -1) for leaf in noise.values()], axis=1)
    assert np.isfinite(drawn).all(), "a step was not taken"
    assert len(np.unique(drawn)) > 0.999 * drawn.size, "noise is used twice"
    unit = PLAN.noise_multiplier * PLAN.clip / PLAN.expected_batch
    assert accepts(drawn.ravel(), unit), "the noise is not what is charged"
    # Products of what should be independent: steps next to each other, and the two tensors.
    for first, second in ((drawn[1:], drawn[:-1]), (noise["w"][:, :, 0], noise["b"])):
        product = (first * second).ravel() / unit**2
        assert abs(product.mean()) < 5 / np.sqrt(product.size), "noise is not independent"


def accepts(drawn: np.ndarray, std: float) -> bool:
    return scipy.stats.kstest(drawn, "norm", args=(0.0, std)).pvalue > 1e-4


def check_sampler() -> None:
    """Independent coins of the plan's rate for every row and step: none twice, none cut off, sizes binomial."""
    plan = DpSgd(rate=0.3, steps=6000, clip=1.0, noise_multiplier=1.0, expected_batch=0.3 * 20)
    chunks = list(plan.batches(20, np.random.default_rng(5)))
    taken = np.zeros((plan.steps, 20), dtype=int)
    step = 0
    for batch in (row for chunk in chunks for row in chunk):
        np.add.at(taken[step], batch[batch >= 0], 1)
        step += 1
    assert step == plan.steps
    assert taken.max() <= 1, "a row is in a batch twice"
    counts = taken.sum(axis=0)
    expected = plan.steps * plan.rate
    chi = np.sum((counts - expected) ** 2 / (expected * (1 - plan.rate)))
    assert scipy.stats.chi2.sf(chi, 20) > ALMOST_NEVER, "rows are not drawn alike"
    sizes = np.bincount(taken.sum(axis=1), minlength=21)
    binomial = plan.steps * scipy.stats.binom.pmf(np.arange(21), 20, plan.rate)
    # Rare sizes are counted together: chi-square wants at least five expected in each.
    low, high = np.flatnonzero(binomial >= 5)[[0, -1]]
    pool = lambda v: np.concatenate([[v[: low + 1].sum()], v[low + 1 : high], [v[high:].sum()]])  # noqa: E731
    assert scipy.stats.chisquare(pool(sizes), pool(binomial) * sizes.sum() / binomial.sum()).pvalue > ALMOST_NEVER, (
        "batch sizes are not binomial"
    )
    together = np.corrcoef(taken.T)[np.triu_indices(20, 1)]
    assert np.abs(together).max() < 6 / np.sqrt(plan.steps), "rows are not drawn independently"


def check_nothing_cut() -> None:
    """Batches larger than anyone foresaw are whole (declared rows may be far below the rows)."""
    plan = DpSgd(rate=0.5, steps=30, clip=1.0, noise_multiplier=1.0, expected_batch=1.0)
    sizes = np.concatenate([(chunk >= 0).sum(axis=1) for chunk in plan.batches(200, np.random.default_rng(1))])
    assert sizes.max() > 100, "batches are cut off"
    assert abs(sizes.mean() - 100) < 6 * np.sqrt(50 / 30), "batches are cut off"


def check_event() -> None:
    """The charge, made again from what was drawn, is the plan's."""
    steps = int(recorded(PLAN)["step"])
    batches = np.concatenate(list(PLAN.batches(ROWS, np.random.default_rng(0))))
    assert len(batches) == steps
    multiplier = float(PLAN.numbers.noise_std / PLAN.numbers.clip)
    assert PLAN.noise_multiplier <= multiplier < 1.00001 * PLAN.noise_multiplier, "noise is not what is charged"
    assert PLAN.event == SelfComposed(PoissonSampled(PLAN.rate, Gaussian(PLAN.noise_multiplier)), steps), (
        "the charge is not that of the steps taken"
    )


def audit(plan: DpSgd, *, run: int, delta: float) -> tuple[float, float]:
    """(lower bound on epsilon, claimed epsilon) for `run` steps: the plan's steps are many such runs in a row.

    Steps here do not depend on earlier ones, so the blocks are independent runs. The attacker sees every noisy sum and
    uses the likelihood ratio; the threshold is chosen on one half of the runs, the bound comes from the other half.
    """
    claim = dpsgd.sgd_event(plan.rate, run, plan.noise_multiplier)
    z = plan.noise_multiplier

    def statistic(seed: int, with_canary: bool) -> np.ndarray:
        sums = canary_sums(plan, with_canary=with_canary, streams=Streams.from_seed(seed))
        ratio = np.log1p(plan.rate * np.expm1((2 * sums - 1) / (2 * z**2)))
        return ratio[: len(ratio) // run * run].reshape(-1, run).sum(axis=1)

    first, second = (np.array_split(statistic(seed, seed == 1), 2) for seed in (1, 0))
    thresholds = np.quantile(second[0], np.linspace(0.5, 0.9995, 200))
    guess = max(
        thresholds, key=lambda t: lower_bound((first[0] > t).mean(), (second[0] > t).mean(), len(first[0]), delta)
    )
    bound = lower_bound((first[1] > guess).mean(), (second[1] > guess).mean(), len(first[1]), delta)
    from understudy.privacy import epsilon

    return bound, epsilon([claim], delta).value


def lower_bound(hits: float, false_alarms: float, runs: int, delta: float, level: float = 0.001) -> float:
    """Clopper-Pearson on both rates; (epsilon, delta)-DP has hits <= exp(epsilon) false alarms + delta."""
    hit, alarm = round(hits * runs), round(false_alarms * runs)
    least = scipy.stats.beta.ppf(level, hit, runs - hit + 1) if hit else 0.0
    most = scipy.stats.beta.ppf(1 - level, alarm + 1, runs - alarm) if alarm < runs else 1.0
    return float(np.log(max(least - delta, 1e-12) / most))


AUDITED = DpSgd(rate=0.5, steps=40_000, clip=0.5, noise_multiplier=0.8, expected_batch=8.0)


def check_audit(plan: DpSgd = AUDITED, *, run: int = 2, delta: float = 1e-2) -> None:
    bound, claim = audit(plan, run=run, delta=delta)
    assert bound < claim, f"the audit shows at least {bound}, above the claimed {claim}"
    assert bound > claim / 2, f"the audit shows {bound} only, of a claimed {claim}: it would not see a bug"
