"""The page of `bench.speed.dpsgd`, from what was measured alone."""

from __future__ import annotations

from statistics import median
from textwrap import fill
from typing import Any

OURS, PART = "ghost", "part: "
WORDS = {
    "ghost": "**ours: ghost clipping, real rows alone**",
    "ghost, with made-up rows": "ours: the game's critic step, 128 made-up rows drawn and used",
    "by example": "ours: one gradient a row (the general way)",
    "jax-privacy": "jax-privacy: `clipped_grad` and its noise",
    "Opacus, hooks": "Opacus: hooks, one gradient a row",
    "Opacus, ghost": "Opacus: ghost clipping",
    "without privacy": "JAX, no privacy",
    "torch, without privacy": "torch, no privacy",
}


def ratio(found: dict[str, Any], name: str, other: str, kind: str) -> float:
    """The median over rounds of one way's time over another's in the same round."""
    times = found["microseconds"]
    return median(a / b for a, b in zip(times[name][kind], times[other][kind], strict=True))


def render(found: dict[str, Any], day: str) -> str:
    loads = ", ".join(f"{part} {before} and {after}" for part, (before, after) in found["load"].items())
    about = (
        "`python -m bench.speed.dpsgd`. Batches of 128, Adam, clip norm 1, noise multiplier 1, float32, "
        f"{found['cores']} threads for all. Python {found['python']}, {found['machine']}. The machine was shared while "
        f"this ran (load averages before and after: {loads}), so clocks show others' share too. "
        "All ways took turns in every round: ratios are medians of ratios within a round. Processor time is of all "
        "threads. torch's threads wait asleep (OMP_WAIT_POLICY=PASSIVE): spinning, as they do by default, would "
        "make Opacus look tens of times slower on a machine that others use too."
    )
    lines = [f"# Private steps, {day}", "", fill(about, 120, break_on_hyphens=False)]
    for case in found.get("steps", ()):
        lines += ["", *_steps(case)]
    if "steps" in found:
        lines += ["", *_targets(found)]
    if "schedule" in found:
        lines += ["", *_schedule(found["schedule"])]
    if "growth" in found:
        lines += ["", *_growth(found["growth"])]
    return "\n".join(lines) + "\n"


def _steps(case: dict[str, Any]) -> list[str]:
    times = case["microseconds"]
    rounds = len(times[OURS]["clock"])
    lines = [
        f"## One step: {case['case']}",
        "",
        f"Microseconds a step: median (least to most) of {rounds} rounds of {case['steps'][OURS]} steps "
        f"({case['steps']['by example']} for the slow ways).",
        f"torch {case['torch']}. Before timing, the first batch's clipped sums were compared: all within "
        f"{max(case['sums_apart'].values()):.0e} of ours.",
        "",
        "| way | clock | processor | clock / ours | processor / ours |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, words in WORDS.items():
        ratios = [f"{ratio(case, name, OURS, kind):.2f}" for kind in ("clock", "processor")]
        lines.append(f"| {words} | {_spread(times[name]['clock'])} | {_spread(times[name]['processor'])} | "
                     f"{' | '.join(ratios)} |")  # fmt: skip
    lines += ["", "The parts of our step, each alone in a loop of its own:", "", "| part | clock | processor |"]
    lines.append("| --- | --- | --- |")
    for name in times:
        if name.startswith(PART):
            words = name.removeprefix(PART)
            lines.append(f"| {words} | {_spread(times[name]['clock'])} | {_spread(times[name]['processor'])} |")
    return lines


def _spread(values: list[float]) -> str:
    return f"{median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def _targets(found: dict[str, Any]) -> list[str]:
    lines = [
        "## Targets",
        "",
        "| target | critic | clock | processor | met by both |",
        "| --- | --- | --- | --- | --- |",
    ]

    def row(words: str, case: dict[str, Any], name: str, other: str, least: float | None, most: float | None) -> None:
        ratios = [ratio(case, name, other, kind) for kind in ("clock", "processor")]
        met = all((least is None or r >= least) and (most is None or r <= most) for r in ratios)
        critic = case["case"].partition(",")[0]
        lines.append(f"| {words} | {critic} | {ratios[0]:.2f} | {ratios[1]:.2f} | {'yes' if met else 'no'} |")

    for case in found["steps"]:
        row("Opacus (hooks) at least 4 times ours", case, "Opacus, hooks", OURS, 4, None)
        row("Opacus (ghost) at least 4 times ours", case, "Opacus, ghost", OURS, 4, None)
        row("one gradient a row at least 4 times ours", case, "by example", OURS, 4, None)
        if case is found["steps"][0]:
            row("ours at most 2 times no privacy", case, OURS, "without privacy", None, 2)
    return lines


def _schedule(found: dict[str, Any]) -> list[str]:
    lines = [
        "## The ADULT schedule of DP-auto-GAN's paper",
        "",
        "10,000 steps of the autoencoder 106-60-15-60-106 at batch 64, then 15,000 of the critic 106-70-35-1 at batch",
        "128 with a generator's step every 15, through `training/loop.run`: Poisson batches from 32,561 rows, padded;",
        "gathering and compiling included, with 128 made-up rows a step.",
        "",
        "| part | seconds by the clock | of the processor |",
        "| --- | --- | --- |",
    ]
    for part in ("autoencoder", "critic", "whole"):
        lines.append(f"| {part} | {found[part]['clock']:.1f} | {found[part]['processor']:.1f} |")
    return [*lines, "", f"Peak memory {found['peak']:,.0f} MiB."]


def _growth(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Growth",
        "",
        "100 critic steps at batch 256 with 128 made-up rows, a generator's step every 5; critic units-256-1,",
        "generator 64-256-units. Each in a process of its own; the second run in the process does not compile. Peak",
        "memory is the kernel's high mark (VmHWM); `before` is that mark when the table stands in memory and training",
        "has not begun.",
        "",
        "| rows | columns | codes each | units | table MiB | first run s | second run s | of the processor s "
        "| before MiB | peak MiB |",
        "|" + " --- |" * 10,
    ]
    for one in found:
        lines.append(
            f"| {one['rows']:,} | {one['columns']} | {one['codes']} | {one['units']:,} | {one['table_mib']:.1f} "
            f"| {one['first']['clock']:.2f} | {one['second']['clock']:.2f} | {one['second']['processor']:.2f} "
            f"| {one['peak_before']:,.0f} | {one['peak']:,.0f} |"
        )
    return lines
