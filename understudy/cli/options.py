"""Options that several commands share, and outputs that are refused before any work is done."""

import os
from pathlib import Path
from typing import Annotated

import typer

from understudy.errors import OptionError

TableArgument = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="The private table: CSV (also .gz), Parquet; images: .npz, a folder of PNG."),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `understudy fit` wrote.")]
SchemaOption = Annotated[Path, typer.Option("--schema", "-s", metavar="SCHEMA", help="Public facts of the table.")]
MethodOption = Annotated[str, typer.Option("--method", "-m", metavar="METHOD", help="See `understudy methods`.")]
EpsilonOption = Annotated[
    float, typer.Option("--epsilon", "-e", metavar="EPS", help="Privacy budget; smaller protects more, inf not at all.")
]
DeltaOption = Annotated[
    float | None,
    typer.Option("--delta", "-d", metavar="DELTA", help="The guarantee's small chance; left out: from declared rows."),
]
BoostSettings = Annotated[
    list[str] | None,
    typer.Option("--boost-set", metavar="OPTION=VALUE", help="An option of boosting; may be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


ForceOption = Annotated[bool, typer.Option("--force", help="Replace a model that is there already.")]


def check_model_output(path: Path, *inputs: Path | None, force: bool | None) -> None:
    """As `check_output`; a model that is there stays, since its budget is spent and it may not be had again.

    force: None where the command has no such option.
    """
    check_output(path, *inputs)
    if path.exists() and not force:
        more = "" if force is None else ", or --force replaces it"
        raise OptionError(f"output {str(path)!r}: there is a file already; give another name{more}")


def check_output(path: Path, *inputs: Path | None) -> None:
    """Refuses a place that cannot be written, before rows are read or budget is spent.

    Nor may it be one of the command's `inputs`: a private table, its schema or its budget file cannot be had again.
    """
    if path.resolve() in [given.resolve() for given in inputs if given is not None]:
        raise OptionError(f"output {str(path)!r}: the command reads this file too; give another name")
    folder = path.parent
    if not folder.is_dir():
        raise OptionError(f"output {str(path)!r}: the folder does not exist; make it first")
    if path.exists() and not path.is_file():
        # Writing renames a finished file into place, which would replace a device by a file.
        raise OptionError(f"output {str(path)!r}: it is not a plain file; choose another name")
    if not os.access(folder, os.W_OK):
        raise OptionError(f"output {str(path)!r}: the folder cannot be written to; choose another place")
