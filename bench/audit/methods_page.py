"""The page about the audits of all methods, from finished cells."""

from __future__ import annotations

from typing import Any

HALF = 0.5


def lower(value: float) -> str:
    """Two digits behind the point, rounded down: a lower bound may be told smaller than it is, never larger.

    >>> lower(0.678), lower(0.0), lower(3.9999)
    ('0.67', '0', '3.99')
    """
    return f"{int(100 * value) / 100:.2f}" if value >= 0.01 else "0"


def bounds_of(audit: dict[str, Any], rule: str | None = None) -> list[dict[str, Any]]:
    """All bounds by a rule with where they come from, the largest first; None: those that are bounds for the method."""
    found = [
        bound | {"view": shown["view"], "canary": game["canary"]}
        for game in audit["games"]
        for shown in game["shown"]
        for bound in shown["bounds"]
        if (bound["rule"] == rule if rule else game["gaussian"] or bound["rule"] != "gaussian")
    ]
    return sorted(found, key=lambda bound: -bound["epsilon"])


def refuted(cells: list[dict[str, Any]], steps: list[dict[str, Any]]) -> list[str]:
    """What has shown more than it claims."""
    found = [f"{cell['key']['subject']} at epsilon {cell['key']['epsilon']:g}" for cell in cells
             if cell["audit"]["lower_bound"] > cell["audit"]["epsilon"]]  # fmt: skip
    return found + [
        f"{step['step']['words']} at epsilon {step['key']['epsilon']:g}"
        for step in steps
        if step["step"]["bound"]["epsilon"] > step["step"]["epsilon"]
    ]


def share(step: dict[str, Any]) -> float:
    return step["step"]["bound"]["epsilon"] / step["step"]["epsilon"]


def verdict(cells: list[dict[str, Any]], steps: list[dict[str, Any]]) -> str:
    """One sentence on the claims, one on the power of the games."""
    above = refuted(cells, steps)
    held = "No bound passes its claim." if not above else f"**Refuted: {'; '.join(above)}.**"
    if not steps:
        return held
    weak = [step["step"]["words"] for step in steps if share(step) <= HALF]
    shares = [share(step) for step in steps]
    power = (
        f"Every mechanism, training steps included, shows more than half of its claim: {min(shares):.0%} to "
        f"{max(shares):.0%}."
        if not weak
        else f"Mechanisms show {min(shares):.0%} to {max(shares):.0%} of their claims; half is not reached by "
        f"{', '.join(dict.fromkeys(weak))}."
    )
    return f"{held} {power}"


def page(
    cells: list[dict[str, Any]], steps: list[dict[str, Any]], longer: list[dict[str, Any]], facts: dict[str, Any]
) -> str:
    return (
        "\n".join(
            [
                f"# Audits of every method, {facts['date']}",
                "",
                f"`python -m bench.audit.methods --minutes {facts['minutes']:g} --workers {facts['workers']}`, source "
                f"`{facts['source'][:16]}`. Two cores, which other work used too. "
                f"What is meant: [docs/audit.md](../../docs/audit.md).",
                "",
                verdict(cells, steps),
                "",
                *_whole_path(cells, facts),
                *_mechanisms(cells, steps),
                *_longer(longer, facts),
            ]
        ).rstrip("\n")
        + "\n"
    )


def _whole_path(cells: list[dict[str, Any]], facts: dict[str, Any]) -> list[str]:
    lines = [
        "## The whole path: fit, model, rows",
        "",
        f"Epsilon is at least so much, at the claim's delta. All bounds of one line hold together with "
        f"{facts['confidence']:.0%} confidence. `counted` holds for any mechanism; by Gaussian DP, numbers in brackets "
        "are indications, no bounds, since not all events are Gaussian. The last columns: runs of both worlds, and "
        "seconds with starting and compiling. A 0 from a few dozen runs says nothing about a method; networks are tiny "
        "here, and their steps few.",
        "",
        "| method | claim | delta | shown | counted | by Gaussian DP | best game | runs | seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for cell in cells:
        audit = cell["audit"]
        counted, gaussian, best = (next(iter(bounds_of(audit, rule)), None) for rule in ("counted", "gaussian", None))
        shown = [lower(bound["epsilon"]) if bound else "too few runs" for bound in (counted, gaussian)]
        valid = all(game["gaussian"] for game in audit["games"])
        game = f"{best['canary']}, {best['view']}" if best and best["epsilon"] > 0 else ""
        runs = sum(sum(game["runs"]) for game in audit["games"])
        told = [
            cell["key"]["subject"],
            f"{audit['epsilon']:g}",
            f"{audit['delta']:g}",
            lower(audit["lower_bound"]),
            shown[0],
            shown[1] if valid else f"({shown[1]})",
            game,
            f"{runs:,}",
            f"{audit['seconds']:.0f}",
        ]
        lines.append("| " + " | ".join(told) + " |")
    return [*lines, ""]


def _mechanisms(cells: list[dict[str, Any]], steps: list[dict[str, Any]]) -> list[str]:
    used: dict[str, list[str]] = {}
    for cell in cells:
        for step in cell["audit"]["steps"]:
            users = used.setdefault(step["name"], [])
            if cell["key"]["subject"] not in users:
                users.append(cell["key"]["subject"])
    lines = [
        "## The mechanisms behind them",
        "",
        "Each played once at either epsilon, with the worst inputs and the best score. The claim is the accountant's "
        "at the delta of the game. The bounds of one epsilon hold together with 99 % confidence.",
        "",
        "| mechanism | delta | claim | shown | share | runs of each | seconds | used by |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for cell in steps:
        step = cell["step"]
        told = [
            step["words"],
            f"{step['delta']:g}",
            f"{step['epsilon']:.2f}",
            lower(step["bound"]["epsilon"]),
            f"{share(cell):.0%}",
            f"{min(step['bound']['runs']):,}",
            f"{cell['seconds']:.0f}",
            ", ".join(used.get(step["name"], [])) or "none, as these short fits are set",
        ]
        lines.append("| " + " | ".join(told) + " |")
    return [*lines, ""]


def _longer(longer: list[dict[str, Any]], facts: dict[str, Any]) -> list[str]:
    if not longer:
        return []
    lines = [
        "## What more time shows",
        "",
        f"`{longer[0]['key']['subject']}` at epsilon {facts['longer_epsilon']:g}; the longer audits go on from the "
        "shorter ones' runs. Each line by itself has the stated confidence: an audit is decided on before it is made.",
        "",
        "| minutes | runs | shown |",
        "| ---: | ---: | ---: |",
    ]
    for cell in longer:
        audit = cell["audit"]
        runs = sum(sum(game["runs"]) for game in audit["games"])
        lines.append(f"| {cell['key']['minutes']:g} | {runs:,} | {lower(audit['lower_bound'])} |")
    return [*lines, ""]
