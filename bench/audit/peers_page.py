"""The page about games against peers: what was found, and how we read it."""

from __future__ import annotations

from typing import Any

from bench.audit.methods_page import lower
from bench.audit.peer_games import DECLARED, LEAKS, games

NAMES = {"datasynthesizer": "DataSynthesizer", "dpmm": "dpmm", "smartnoise": "smartnoise-synth"}
USES = {
    ("datasynthesizer", "declared"): "values in its domain file, a fresh seed a fit",
    ("datasynthesizer", "undeclared"): "as in its notebook: domains from the rows; in the game about a copy of a row, "
    "the default seed",
    ("dpmm", "declared"): "values (and bounds) declared, as in its README",
    ("dpmm", "undeclared"): "no domain given",
    ("smartnoise", "declared"): "a transformer made from declared values",
    ("smartnoise", "undeclared"): "as in its examples: columns named by kind, preprocessor_eps for bounds",
}
# What we take a refuted claim for: by peer, use and game. What peers say of it themselves is part of each.
READINGS = {
    ("datasynthesizer", "undeclared", "duplicate"): "The seed of its noise is 0 unless one is given, so the same table "
    "gives the same description every time, and whoever has the program can subtract the noise. Its authors found the "
    "same and changed the default (pull request 46, July 2026); the version that we played still has the old one.",
    ("datasynthesizer", "undeclared", "value"): "Values come from the rows. Its README says so (noise within the "
    "active domain), and there is a domain file to prevent it: a finding of this use, not of the noise.",
    ("datasynthesizer", "undeclared", "far"): "The smallest and largest number come from the rows, as its README says; "
    "`numerical_attribute_ranges` prevents it. A finding of this use.",
    ("datasynthesizer", "declared", "value"): "A finding in careful use: tables of the network are as long as the "
    "largest code that occurs in the rows, so a declared value that nobody has is never drawn, and one that a single "
    "row has is.",
    ("datasynthesizer", "declared", "missing"): "A finding in careful use: the share of missing cells is described "
    "exactly, and missing is a value only where it occurs.",
    (
        "dpmm",
        "undeclared",
        "value",
    ): "The library warns of it (`PrivacyLeakage`) and goes on; its README has a domain. A finding of this use.",
    ("dpmm", "declared", "constant"): "A finding in careful use: a column with one value in the rows is set aside and "
    "given back unchanged, whatever its domain declares, so that one other value in it is seen.",
    (
        "dpmm",
        "declared",
        "missing",
    ): "A finding in careful use: a column gets missing cells if there is one in the rows. "
    "Its README says that missing values are reproduced where present; the domain cannot declare them.",
    ("smartnoise", "undeclared", "value"): "Categories are learnt from the rows without noise. A transformer that is "
    "fitted to declared values prevents it (the line `declared`): a finding of this use, that of its examples.",
}
SIZE_READING = (
    "The number of rows is used and told exactly. Where it is public, or rows are replaced rather than added, this is "
    "no finding; noise and scores are made for a row added or removed."
)


def reading(game: dict[str, Any], verdict: dict[str, Any]) -> str:
    """Words for a refuted claim; nothing is said where nothing was shown."""
    if not verdict["refuted"]:
        return ""
    if verdict["what"] == "number of rows":
        return SIZE_READING
    return READINGS.get((game["peer"], game["use"], game["game"]), "Not explained yet.")


def page(found: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    played = games()
    lines = [
        f"# Games against peers, {facts['date']}",
        "",
        f"`python -m bench.audit.peers`. Claim: epsilon {facts['epsilon']:g} (in all, preprocessing included), delta "
        "1e-6 (0 for DataSynthesizer, which has none), for one row added or removed. Each library fits two small "
        "made-up tables that differ in one row, many times, in its own environment; an attacker sees synthetic rows, "
        "and the description that DataSynthesizer writes. Bounds of one game hold together with 95 % confidence, by "
        "counting. With so few runs a bound of 0 says nothing; `at best` is what they could have shown.",
        "",
        "A finding is one of a *version* and a *use*. `undeclared` is what the libraries allow and their examples do; "
        "several of them say that domains should be given. `declared` is the most careful use that we know of.",
        "",
        "| peer | method | use | the row | shown | at best | runs of each | seen with / without it | verdict |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | --- | --- |",
    ]
    notes: list[str] = []
    for game in found:
        for verdict in game["verdicts"]:
            words = reading(game, verdict)
            if words and words not in notes:
                notes.append(words)
            mark = f" [{notes.index(words) + 1}]" if words else ""
            seen = "{} / {}".format(*verdict["seen"]) if "seen" in verdict else ""
            what = "how many rows there are" if verdict["what"] == "number of rows" else played[game["game"]].words
            told = [
                NAMES[game["peer"]],
                game["method"],
                game["use"],
                what,
                lower(verdict["bound"]),
                lower(verdict["ceiling"]),
                _runs(verdict),
                seen,
                f"**refuted**{mark}" if verdict["refuted"] else "stands",
            ]
            lines.append("| " + " | ".join(told) + " |")
        if not game["verdicts"]:
            told = [NAMES[game["peer"]], game["method"], game["use"], played[game["game"]].words, "", "", "0", ""]
            lines.append("| " + " | ".join([*told, game["status"] or "no runs"]) + " |")
    lines += ["", "`seen`: runs with a cell that the row alone could have (a value, a missing cell, a number more than "
              "twice as large as any other). Seen often with the row and never without it, such an event refutes every "
              "epsilon at a small delta; the number of runs alone limits the bound.", ""]  # fmt: skip
    lines += ["## How we read the findings", "", *(f"{number}. {text}" for number, text in enumerate(notes, start=1))]
    lines += [
        "",
        *_kept(found),
        "## Uses",
        "",
        *(f"- **{NAMES[peer]}, {use}**: {words}." for (peer, use), words in USES.items() if peer in facts["packages"]),
        "- AIM has four rounds, and inference in dpmm few steps, to be quick: they see noisy tables alone.",
        "- mbi (Private-PGM) has on the package index the inference alone: there is no mechanism to play against.",
        "- The GANs, MWEM and PAC-Synth of smartnoise-synth were not played.",
        "",
        "## Versions",
        "",
        *(f"- {peer}: {', '.join(shown)}" for peer, shown in facts["packages"].items()),
    ]
    return "\n".join(lines) + "\n"


def _runs(verdict: dict[str, Any]) -> str:
    failed = sum(verdict["failed"])
    return f"{min(verdict['runs'])}" + (f" ({failed} ended with an error)" if failed else "")


def _kept(found: list[dict[str, Any]]) -> list[str]:
    """What stood in careful use: said as plainly as what did not."""
    stood = [
        f"{NAMES[game['peer']]} {game['method']} ({games()[game['game']].words})"
        for game in found
        if game["use"] == DECLARED
        and game["verdicts"]
        and not any(verdict["refuted"] for verdict in game["verdicts"] if verdict["what"] != "number of rows")
    ]
    leaks = [game for game in found if game["use"] == DECLARED and game["game"] in LEAKS and game["verdicts"]]
    if not stood:
        return []
    held = sum(not verdict["refuted"] for game in leaks for verdict in game["verdicts"])
    return [
        f"Nothing was shown against, in careful use: {'; '.join(stood)}. Of {len(leaks)} games for leaks in careful "
        f"use, {held} stood.",
        "",
    ]
