"""What the fits of one game show: lower bounds on epsilon, with 95 % confidence together."""

from __future__ import annotations

from typing import Any

from bench.audit.peer_games import EPSILON, LEAKS
from bench.audit.played import EQUAL, LIKE, ONLY
from understudy.auditing.bounds import epsilon_lower_bound, event_lower_bound, shared_confidence

CONFIDENCE = 0.95
SIZE = "number of rows"


def verdicts(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """One for what was looked for, one for the number of rows where the peer tells it.

    In a game about a leak, the event was fixed before: a cell that the canary alone could have. In others each score
    pays its part of the error, and the largest bound counts.
    """
    worlds = {world: [line for line in cell["lines"] if line["with"] == world] for world in (True, False)}
    runs = {world: len(lines) for world, lines in worlds.items()}
    if not all(runs.values()):
        return []
    failed = [sum("failed" in line for line in worlds[world]) for world in (True, False)]
    told = {"runs": [runs[True], runs[False]], "failed": failed}
    if cell["key"]["game"] in LEAKS:
        hits, alarms = (sum(_value(line, ONLY) > 0 for line in worlds[world]) for world in (True, False))
        bound = event_lower_bound(hits, runs[True], alarms, runs[False], cell["key"]["delta"], CONFIDENCE)
        return [told | {"what": ONLY, "seen": [hits, alarms]} | _judged(bound)]
    names = [name for name in _names(worlds) if name not in (ONLY, SIZE)]
    names = [name for name in (LIKE, EQUAL, *names) if name in names]
    sized = SIZE in _names(worlds)
    confidence = shared_confidence(CONFIDENCE, len(dict.fromkeys(names)) + sized)
    bounds = {
        name: epsilon_lower_bound(
            *([_value(line, name) for line in worlds[world]] for world in (True, False)),
            cell["key"]["delta"],
            confidence,
        )
        for name in dict.fromkeys([*names, *([SIZE] if sized else [])])
    }
    best = max((name for name in bounds if name != SIZE), key=lambda name: bounds[name].epsilon)
    found = [told | {"what": best} | _judged(bounds[best])]
    return found + ([told | {"what": SIZE} | _judged(bounds[SIZE])] if sized else [])


def _judged(bound: Any) -> dict[str, Any]:
    return {"bound": bound.epsilon, "ceiling": bound.ceiling, "refuted": bound.epsilon > EPSILON}


def _names(worlds: dict[bool, list[dict[str, Any]]]) -> list[str]:
    return list(dict.fromkeys(name for lines in worlds.values() for line in lines for name in line.get("readings", {})))


def _value(line: dict[str, Any], name: str) -> float:
    """A fit that ended with an error is an output too: it counts as one that shows nothing."""
    return float(line.get("readings", {}).get(name, -1.0))
