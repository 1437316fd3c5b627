"""`understudy verify`: anyone recomputes a model's guarantee, without data."""

from typing import Annotated

import typer

from understudy.cli import screen
from understudy.cli.options import JsonOption, ModelArgument


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
        arrays=model_file.certified_arrays(parts.arrays, parts.facts),
        schema_digest=parts.schema.digest(),
        release=release,
    )
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
