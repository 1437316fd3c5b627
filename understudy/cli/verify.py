"""`understudy verify`: anyone recomputes a model's guarantee, without data."""

from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import screen
from understudy.cli.options import JsonOption, ModelArgument

if TYPE_CHECKING:
    from understudy.privacy.certificate import Finding
    from understudy.synthesizers.model_file import Parts


def verify(
    model: ModelArgument,
    release: Annotated[bool, typer.Option("--release", help="Ask also whether it may leave the house.")] = False,
    json: JsonOption = False,
) -> None:
    """Recompute epsilon from the ledger, and check that the certificate belongs to this model. Exit code 1 if not.

    Needs no data. It shows that the claim follows from the uses of the rows that the certificate lists; that these
    were all is what the program promises, not something that a file can show.
    """
    from understudy.synthesizers import model_file

    parts = model_file.read(model)
    certificate = parts.certificate
    findings = certificate.check(
        arrays=model_file.certified_arrays(parts.arrays, parts.facts, parts.config),
        schema_digest=parts.schema.digest(),
        release=release,
    )
    if release:
        findings += check_setting(parts)
    holds = all(finding.ok for finding in findings)
    if json:
        screen.print_json(
            {
                "holds": holds,
                "release": release,
                "epsilon": certificate.epsilon,
                "delta": certificate.delta,
                "rng": certificate.rng,
                "findings": [{"ok": f.ok, "what": f.what, "detail": f.detail} for f in findings],
            }
        )
    else:
        screen.print_table(("", "checked", "found"), [("ok" if f.ok else "NO", f.what, f.detail) for f in findings])
        screen.say()
        if holds:
            screen.say(f"The certificate holds. {certificate.statement()}", style="green")
        else:
            failed = ", ".join(finding.what for finding in findings if not finding.ok)
            screen.say(f"The certificate does NOT hold: {failed}. Do not rely on it.", style="bold red")
    if not holds:
        raise typer.Exit(1)


def check_setting(parts: "Parts") -> "list[Finding]":
    """What a certificate cannot see by itself: whether its delta suits the declared rows, and the schema is public."""
    from understudy.privacy.certificate import Finding

    rows, delta = parts.schema.rows, parts.certificate.delta
    small = rows is not None and delta < 1 / rows
    marked = len(parts.schema.unconfirmed())
    return [
        Finding(
            small,
            "delta",
            "below one over the declared rows"
            if small
            else "not below one over the declared rows: one that publishes a row would pass; fit with a smaller one",
        ),
        Finding(
            not marked,
            "public facts",
            "no fact of the schema is marked as read off the rows"
            if not marked
            else f"{marked} facts of the schema are marked as read off the rows; confirm them, and fit again",
        ),
    ]
