"""`understudy sample`: synthetic rows from a model."""

import os
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import screen
from understudy.cli.options import ModelArgument, check_output
from understudy.errors import OptionError

ENDINGS = (".csv", ".csv.gz", ".parquet", ".npz", ".png")


def sample(
    model: ModelArgument,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="OUT", help="A .csv, .csv.gz or .parquet file; for images .npz, .png or FOLDER/."
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option("--rows", "-n", metavar="N", help="How many; left out: about as many as the table had."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="COLUMN=VALUE, COLUMN=A..B, COLUMN=V1,V2 or COLUMN= (missing); may be repeated.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Repeat the same draw. Costs no privacy.")] = None,
    even: Annotated[
        bool,
        typer.Option(
            help="Choose rows so that pairs of columns come as often as the model says, or as they are drawn."
        ),
    ] = True,
) -> None:
    """Draw synthetic rows. Rows are free: drawing any number of them costs no privacy."""
    if not _is_folder(output):  # a path object would forget the slash at the end
        check_output(Path(output), model)
        if not output.lower().endswith(ENDINGS):
            raise OptionError(f"output {output!r}: the name must end in {', '.join(ENDINGS)}, or in / for images")
    from understudy.cli.conditions import parse_where
    from understudy.privacy.certificate import rounded_up
    from understudy.synthesizers.api import load
    from understudy.table.frame import output_kind, write_frame
    from understudy.table.image_files import check_folder

    loaded = load(model)
    if output_kind(output, loaded.schema) == "folder":
        check_folder(Path(output))
    drawn = loaded.sample(rows, where=parse_where(where or (), loaded.schema), seed=seed, even=even)
    write_frame(drawn, loaded.schema, output)
    certificate = loaded.certificate
    what = "row" if len(drawn) == 1 else "rows"
    screen.say(
        f"Wrote {len(drawn):,} synthetic {what} to {output} (epsilon {rounded_up(certificate.epsilon, 4)}, delta "
        f"{rounded_up(certificate.delta, 4)}: the same for any number of rows)."
    )
    if certificate.rng == "seeded":
        screen.note("warning: the model was fitted with a seed: not for release", style="yellow")


def _is_folder(output: str) -> bool:
    return output.endswith(("/", os.sep)) or Path(output).is_dir()
