"""What a private step costs: ours beside jax-privacy, Opacus and a step without privacy; the ADULT schedule; growth.

`python -m bench.speed.dpsgd` writes bench/results/<date>-dpsgd.md and .json; `--only steps|schedule|growth` renews one
part of today's. Opacus runs in an environment of its own (`python -m bench.peers.install opacus`). All ways take turns
in every round, so that a busy machine slows all of them: read the ratios. Seconds are by the clock and of the processor
(all threads).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.speed import dpsgd_page as page

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
OPACUS = HERE.parent / ".venvs" / "opacus" / "bin" / "python"
BATCH, CLIP, NOISE, LEARNING_RATE = 128, 1.0, 1.0, 1e-4
ROUNDS = 7
# 14 columns whose one-hot code has ADULT's 106 units.
ADULT = (8, 16, 7, 14, 6, 5, 2, 41, 2, 2, 2, 2, 2, 3)
ADULT_ROWS = 32_561


@dataclass(frozen=True)
class Case:
    """A critic, its table's columns, and how many steps a round takes: quick ways more than slow ones."""

    name: str
    columns: tuple[int, ...]
    hidden: tuple[int, ...]
    steps: int
    slow_steps: int


CASES = (
    Case("ADULT critic, 106-70-35-1", ADULT, (70, 35), 200, 50),
    Case("wide critic, 1071-256-1", (2,) * 1071, (256,), 24, 4),
)
SLOW = ("by example", "jax-privacy", "Opacus, hooks", "Opacus, ghost")
OURS = "ghost"

Timed = Callable[[int], dict[str, float]]


def table(rows: int, columns: tuple[int, ...]) -> np.ndarray:
    """Codes without meaning: time does not depend on them."""
    rng = np.random.default_rng(0)
    codes = np.empty((rows, len(columns)), dtype=np.uint8)
    for number, size in enumerate(columns):
        codes[:, number] = rng.integers(0, size, rows, dtype=np.uint8)
    return codes


def ways(case: Case, units: Any, codes: Any) -> tuple[dict[str, Timed], dict[str, Any], Any]:
    """Our ways to take steps as functions of their number, the clipped sums of the first batch, and the weights."""
    import jax
    import jax.numpy as jnp
    import optax
    from jax_privacy import clipping, noise_addition

    from understudy.training import gan, ghost, nets
    from understudy.training.dpsgd import DpSgd
    from understudy.training.heads import Blocks

    blocks = Blocks(case.columns)
    critic = nets.Net.of([blocks.width, *case.hidden, 1])
    params = nets.named(nets.init(critic, jax.random.key(0)))
    adam = optax.adam(LEARNING_RATE, b1=0.5, b2=0.9)
    plan = DpSgd(rate=0.01, steps=1, clip=CLIP, noise_multiplier=NOISE, expected_batch=BATCH)
    numbers = plan.numbers
    present = jnp.ones(BATCH, dtype=jnp.float32)

    def losses(params: Any, rows: Any, tap: Any = nets.untapped) -> Any:
        return -nets.apply(critic, list(params.values()), rows, tap)[:, 0]

    def loss_of_one(params: Any, row: Any) -> Any:
        return losses(params, row[None])[0]

    theirs = clipping.clipped_grad(loss_of_one, l2_clip_norm=CLIP, keep_batch_dim=False)
    privatizer = noise_addition.gaussian_privatizer(stddev=NOISE * CLIP, prng_key=jax.random.key(1))
    sums = {
        OURS: lambda params, rows: ghost.clipped_sum(losses, params, rows, present, clip=numbers.clip),
        "by example": lambda params, rows: ghost.clipped_sum_by_example(
            loss_of_one, params, rows, present, clip=numbers.clip
        ),
        "jax-privacy": theirs,
    }

    def follow(state: Any, gradient: Any) -> Any:
        updates, moments = adam.update(gradient, state[1], state[0])
        return optax.apply_updates(state[0], updates), moments, *state[2:]

    def private(clipped: Any, numbers: Any, state: Any, rows: Any, present: Any, noise: Any, key: Any) -> Any:
        return follow(state, numbers.noisy_mean(clipped(state[0], rows), noise))

    def with_their_noise(state: Any, rows: Any, key: Any) -> Any:
        noisy, noise_state = privatizer.update(theirs(state[0], rows), state[2])
        params, moments, _ = follow(state, jax.tree.map(lambda leaf: leaf / BATCH, noisy))
        return params, moments, noise_state

    def without_privacy(state: Any, rows: Any, key: Any) -> Any:
        return follow(state, jax.grad(lambda params: losses(params, rows).mean())(state[0]))

    # The parts of a step alone. Each must change what is carried on, or the compiler would leave it out.
    def clipping_alone(state: Any, rows: Any, key: Any) -> Any:
        found = sums[OURS](state[0], rows)
        return jax.tree.map(lambda old, new: old + 1e-9 * new, state[0], found), *state[1:]

    def noise_alone(numbers: Any, carried: Any, rows: Any, present: Any, noise: Any, key: Any) -> Any:
        return numbers.noisy_mean(carried, noise)

    def optimiser_alone(state: Any, rows: Any, key: Any) -> Any:
        return follow(state, state[0])

    # The whole step of the game, its generator never in turn; its made-up rows are drawn anew every step.
    game = _game(blocks, critic, generator=nets.Net.of([64, 64 if len(case.hidden) == 2 else 256, blocks.width]))
    start = (params, adam.init(params))
    # Private steps run as in a training: the loop draws their noise ahead.
    in_the_loop = {
        OURS: (partial(private, sums[OURS]), start, units),
        "ghost, with made-up rows": (gan.make_step(game), gan.start(game, 0), codes),
        "by example": (partial(private, sums["by example"]), start, units),
        "part: noise": (noise_alone, params, units),
    }
    alone = {
        "jax-privacy": (with_their_noise, (*start, privatizer.init(params)), units),
        "without privacy": (without_privacy, start, units),
        "part: clipping and gradients": (clipping_alone, start, units),
        "part: optimiser": (optimiser_alone, start, units),
    }
    every = {name: _timed_in_the_loop(numbers, *parts) for name, parts in in_the_loop.items()}
    every |= {name: _timed(*parts) for name, parts in alone.items()}
    first = {name: jax.tree.leaves(jax.jit(clipped)(params, units[0])) for name, clipped in sums.items()}
    return every, first, params


def _game(blocks: Any, critic: Any, generator: Any, *, frozen: int = 0, critic_steps: int = 1 << 30) -> Any:
    from understudy.training import gan

    return gan.Game(
        blocks=blocks,
        generator=generator,
        critic=critic,
        latent=generator.sizes[0],
        fakes=BATCH,
        critic_steps=critic_steps,
        loss="wgan",
        critic_rate=LEARNING_RATE,
        generator_rate=LEARNING_RATE,
        temperature=0.5,
        weight_limit=None,
        frozen=frozen,
    )


def _timed(step: Callable[[Any, Any, Any], Any], start: Any, rows: Any) -> Timed:
    """Runs of one compiled scan each; the first call compiles."""
    import jax

    @jax.jit
    def scan(state: Any, rows: Any, keys: Any) -> Any:
        return jax.lax.scan(lambda state, inputs: (step(state, *inputs), None), state, (rows, keys))[0]

    def run(steps: int) -> dict[str, float]:
        keys = jax.block_until_ready(jax.random.split(jax.random.key(2), steps))
        some = jax.block_until_ready(rows[:steps])
        clock, processor = time.perf_counter(), time.process_time()
        jax.block_until_ready(scan(start, some, keys))
        return {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}

    return run


def _timed_in_the_loop(numbers: Any, step: Any, start: Any, rows: Any) -> Timed:
    """The same for a private step, in the compiled chunk that every training runs."""
    import jax
    import jax.numpy as jnp

    from understudy.training import loop

    def run(steps: int) -> dict[str, float]:
        keys = jax.random.split(jax.random.key(2), (2, steps))
        some = rows[:steps]
        present = jnp.ones(some.shape[:2], dtype=jnp.float32)
        jax.block_until_ready((keys, some, present))
        clock, processor = time.perf_counter(), time.process_time()
        jax.block_until_ready(loop._scan(numbers, start, some, present, keys[0], keys[1], step=step))
        return {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}

    return run


class Opacus:
    """The child with Opacus, kept open so that it takes its turn in every round."""

    def __init__(self, folder: Path, params: Any, units: np.ndarray) -> None:
        weights = [np.asarray(layer[part]) for layer in params.values() for part in ("w", "b")]
        self.folder = folder
        np.savez(
            folder / "facts.npz",
            batches=units,
            arrays=len(weights),
            clip=CLIP,
            noise_multiplier=NOISE,
            learning_rate=LEARNING_RATE,
            **{f"weights{number}": array for number, array in enumerate(weights)},
        )
        command = [str(OPACUS), str(HERE / "dpsgd_opacus.py"), str(folder / "facts.npz"), str(os.cpu_count())]
        # Threads of OpenMP that wait by spinning make torch fifty times slower where other programs run too.
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"},
        )
        self.about = json.loads(self.process.stdout.readline())

    def ask(self, *words: object) -> dict[str, float]:
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def clipped_sum(self, method: str) -> list[np.ndarray]:
        self.ask("check", method, self.folder / "sums.npz")
        found = np.load(self.folder / "sums.npz")
        return [found[name] for name in sorted(found.files, key=lambda name: int(name.removeprefix("arr_")))]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure_steps(case: Case, rounds: int) -> dict[str, Any]:
    """Microseconds a step of every way, round by round."""
    import jax.numpy as jnp

    from understudy.training.heads import Blocks

    codes = table(case.steps * BATCH, case.columns).reshape(case.steps, BATCH, -1)
    blocks = Blocks(case.columns)
    units = np.stack([np.asarray(blocks.encode(batch)) for batch in codes])
    timed, first, params = ways(case, jnp.asarray(units), jnp.asarray(codes))
    with tempfile.TemporaryDirectory() as folder:
        opacus = Opacus(Path(folder), params, units)
        for name, method in (("Opacus, hooks", "hooks"), ("Opacus, ghost", "ghost")):
            # Leaves of our trees come in the order of names: biases before weights.
            sums = opacus.clipped_sum(method)
            first[name] = [sums[place ^ 1] for place in range(len(sums))]
            timed[name] = partial(opacus.ask, "time", method)
        timed["torch, without privacy"] = partial(opacus.ask, "time", "torch")
        apart = {name: _apart(found, first[OURS]) for name, found in first.items()}
        steps = {name: case.slow_steps if name in SLOW else case.steps for name in timed}
        for name, run in timed.items():
            run(steps[name])
        found: dict[str, Any] = {name: {"clock": [], "processor": []} for name in timed}
        for number in range(rounds):
            print(case.name, "round", number + 1, flush=True)
            for name, run in timed.items():
                for kind, seconds in run(steps[name]).items():
                    found[name][kind].append(round(seconds / steps[name] * 1e6, 1))
        opacus.close()
    return {"case": case.name, "steps": steps, "microseconds": found, "sums_apart": apart, **opacus.about}


def _apart(found: list[Any], ours: list[Any]) -> float:
    """How far a clipped sum is from ours, relative to its size: all ways must do the same work."""
    flat, other = (np.concatenate([np.asarray(leaf).ravel() for leaf in leaves]) for leaves in (found, ours))
    apart = float(np.linalg.norm(flat - other) / np.linalg.norm(other))
    if apart > 1e-4:
        raise SystemExit(f"two ways give different clipped sums, {apart:.2g} apart: they cannot be compared")
    return apart


def schedule_once() -> None:
    """In a child: the ADULT schedule of DP-auto-GAN's paper through `loop.run`, compiling included."""
    from understudy.privacy import Streams
    from understudy.progress import silent
    from understudy.training import autoencoder, gan, loop
    from understudy.training.dpsgd import DpSgd
    from understudy.training.heads import Blocks
    from understudy.training.nets import Net

    codes, blocks, streams = table(ADULT_ROWS, ADULT), Blocks(ADULT), Streams.from_entropy()

    def plan(batch: int, steps: int, noise: float) -> DpSgd:
        rate = batch / ADULT_ROWS
        return DpSgd(rate=rate, steps=steps, clip=CLIP, noise_multiplier=noise, expected_batch=batch)

    run = partial(loop.run, codes=codes, streams=streams, progress=silent)
    coder = autoencoder.Coder(
        blocks=blocks,
        encoder=Net.of([106, 60, 15]),
        decoder=Net.of([15, 60, 106]),
        learning_rate=LEARNING_RATE,
    )
    begin, used = time.perf_counter(), time.process_time()
    coded = run(plan(64, 10_000, 2.5), autoencoder.make_step(coder), autoencoder.start(coder, 0), stage="autoencoder")
    middle, used_then = time.perf_counter(), time.process_time()
    generator = Net.of([64, 64, 15]) + coder.decoder
    game = _game(blocks, Net.of([106, 70, 35, 1]), generator, frozen=2, critic_steps=15)
    decoder = autoencoder.layers_of(coded["params"], "decoder.")
    run(plan(128, 15_000, 7.5), gan.make_step(game), gan.start(game, 0, decoder=decoder), stage="critic")
    end, used_at_end = time.perf_counter(), time.process_time()
    _tell(
        autoencoder={"clock": middle - begin, "processor": used_then - used},
        critic={"clock": end - middle, "processor": used_at_end - used_then},
        whole={"clock": end - begin, "processor": used_at_end - used},
    )


def grow_once(rows: int, columns: int, codes_each: int) -> None:
    """In a child: 100 steps at batch 256 with the generator's turns; the second run does not compile."""
    from understudy.privacy import Streams
    from understudy.progress import silent
    from understudy.training import gan, loop
    from understudy.training.dpsgd import DpSgd
    from understudy.training.heads import Blocks
    from understudy.training.nets import Net

    blocks = Blocks((codes_each,) * columns)
    game = _game(blocks, Net.of([blocks.width, 256, 1]), Net.of([64, 256, blocks.width]), critic_steps=5)
    plan = DpSgd(rate=256 / rows, steps=100, clip=CLIP, noise_multiplier=NOISE, expected_batch=256, chunks=4)
    codes = table(rows, blocks.sizes)
    before = _peak()
    told: dict[str, Any] = {}
    for name in ("first", "second"):
        begin, used = time.perf_counter(), time.process_time()
        streams = Streams.from_seed(0)
        loop.run(plan, gan.make_step(game), gan.start(game, 0), codes, streams=streams, progress=silent, stage="")
        told[name] = {"clock": time.perf_counter() - begin, "processor": time.process_time() - used}
    _tell(**told, peak_before=before, table_mib=codes.nbytes / 2**20, units=blocks.width)


def _peak() -> float:
    """Most memory of this process so far, in MiB; unlike getrusage's, not that of the process it came from."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _tell(**found: Any) -> None:
    print(json.dumps({**found, "peak": _peak()}))


def _child(*arguments: object) -> Any:
    command = [sys.executable, "-m", "bench.speed.dpsgd", *map(str, arguments)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    print(*arguments, json.dumps(found), flush=True)
    return found


def measure_growth(largest: int) -> list[dict[str, Any]]:
    shapes = [(10**power, 14, 8) for power in range(3, 8) if 10**power <= largest]
    shapes += [(100_000, columns, 2) for columns in (14, 100, 300, 1071)]
    return [
        {"rows": rows, "columns": columns, "codes": codes, **_child("grow", rows, columns, codes)}
        for rows, columns, codes in shapes
    ]


def main() -> None:
    if sys.argv[1:2] == ["schedule"]:
        return schedule_once()
    if sys.argv[1:2] == ["grow"]:
        return grow_once(*map(int, sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("steps", "schedule", "growth"), help="one part; the others stay as they are")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of every way")
    parser.add_argument("--largest", type=int, default=10_000_000, help="most rows of the growing table")
    asked = parser.parse_args()
    if not OPACUS.exists() and asked.only in (None, "steps"):
        sys.exit("Opacus is missing: python -m bench.peers.install opacus")
    warnings.filterwarnings("ignore", "optax.global_norm is deprecated", DeprecationWarning)  # in jax-privacy
    name = RESULTS / f"{date.today().isoformat()}-dpsgd"
    file = name.with_suffix(".json")
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() and asked.only else {}
    for part in ("steps", "schedule", "growth"):
        if asked.only not in (None, part):
            continue
        load = round(os.getloadavg()[0], 1)
        if part == "steps":
            found[part] = [measure_steps(case, asked.rounds) for case in CASES]
        else:
            found[part] = _child("schedule") if part == "schedule" else measure_growth(asked.largest)
        found.setdefault("load", {})[part] = [load, round(os.getloadavg()[0], 1)]
        found |= {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        file.write_text(json.dumps(found, indent=1) + "\n")
        name.with_suffix(".md").write_text(page.render(found, date.today().isoformat()))


if __name__ == "__main__":
    main()
