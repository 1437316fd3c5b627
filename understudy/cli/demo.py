"""`understudy demo`: everything once, on a made-up table whose truth is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import screen
from understudy.cli.listener import listening
from understudy.errors import OptionError

if TYPE_CHECKING:
    import pandas as pd

    from understudy.progress import Progress
    from understudy.synthesizers.api import Model

EPSILON = 1.0
FRESH_SEED = 1
CHART_BINS = 8


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where to write everything.")] = Path(
        "demo"
    ),
) -> None:
    """Make a table, fit a stand-in at epsilon 1, draw rows, verify, and compare them with the truth."""
    _make_folder(output)
    from understudy import demo as made_up
    from understudy.synthesizers import api

    with listening() as progress:
        progress("making patients", 0.0)
        real, fresh = made_up.demo_table(), made_up.demo_table(seed=FRESH_SEED)
        _write_inputs(output, real, made_up.SCHEMA)
        schema = made_up.demo_schema()
        model = api.fit(output / "patients.csv", schema, epsilon=EPSILON, progress=progress)
        progress("sampling", 0.0)
        synthetic = model.sample(len(real))
        _write_outputs(output, model, synthetic)
        holds = _verify(output, progress)
        rows = _compare(real, synthetic, fresh, model, progress)
        progress("drawing charts", 0.0)
        _draw(output, real, synthetic, model)
        _report(output, real, synthetic, fresh, model, progress)
    screen.say(model.certificate.statement(), style="green")
    screen.say(f"Recomputed from the model file: {'it holds' if holds else 'it does NOT hold'}.")
    screen.say()
    screen.print_table(("", "synthetic", "real rows", "best"), rows, right=("synthetic", "real rows", "best"))
    screen.say()
    screen.say(
        "TVD: total variation distance from the table (of the real rows: fresh ones from the same source). AUC: how "
        "well a random forest that learnt from these rows ranks readmissions among patients whom it has not seen. "
        "Computed from real rows: of a private table, for its steward alone."
    )
    screen.say()
    screen.say(f"In {output}:")
    screen.print_facts(FILES.items())
    screen.say("\nNext: your own table.")
    screen.say("  understudy draft TABLE.csv -o TABLE.yaml", style="bold")
    if not holds:
        raise typer.Exit(1)


FILES = {
    "patients.csv": "the made-up private table",
    "patients.yaml": "its public facts",
    "model.understudy": "the stand-in, with its certificate",
    "certificate.json": "the guarantee, for anyone to recompute",
    "synthetic.csv": "synthetic rows",
    "report.html": "how good they are, column by column",
    "histograms.png": "columns side by side",
    "dependence.png": "how columns hang together",
}


def _make_folder(path: Path) -> None:
    problem = ""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        problem = "it is a file; give a folder"
    except OSError as error:
        problem = f"the folder cannot be made ({error.strerror}); choose another place"
    if problem:
        raise OptionError(f"output {str(path)!r}: {problem}")


def _write_inputs(folder: Path, real: "pd.DataFrame", schema: str) -> None:
    from understudy.table.written import written_whole

    with written_whole(folder / "patients.csv") as file:
        real.to_csv(file, index=False)
    with written_whole(folder / "patients.yaml") as file:
        file.write(schema.encode())


def _write_outputs(folder: Path, model: "Model", synthetic: "pd.DataFrame") -> None:
    from understudy.table.frame import write_frame
    from understudy.table.written import written_whole

    model.save(folder / "model.understudy")
    write_frame(synthetic, model.schema, folder / "synthetic.csv")
    with written_whole(folder / "certificate.json") as file:
        file.write(model.certificate.to_json().encode())


def _report(
    folder: Path,
    real: "pd.DataFrame",
    synthetic: "pd.DataFrame",
    fresh: "pd.DataFrame",
    model: "Model",
    progress: "Progress",
) -> None:
    from understudy.cli.report import guarantee_of, steward_page
    from understudy.table.written import written_whole

    guarantee = guarantee_of(folder / "model.understudy", model.schema, release=False)
    page = steward_page(
        real, synthetic, model.schema, fresh, guarantee, title="Report on the demo", full=False, progress=progress
    )
    with written_whole(folder / "report.html", mode=0o600) as file:
        file.write(page.encode())


def _verify(folder: Path, progress: "Progress") -> bool:
    from understudy.synthesizers import model_file

    progress("verifying", 0.0)
    parts = model_file.read(folder / "model.understudy")
    arrays = model_file.certified_arrays(parts.arrays, parts.facts, parts.config)
    return parts.certificate.holds(arrays=arrays, schema_digest=parts.schema.digest(), release=True)


def _compare(
    real: "pd.DataFrame", synthetic: "pd.DataFrame", fresh: "pd.DataFrame", model: "Model", progress: "Progress"
) -> list[tuple[str, str, str, str]]:
    """Distances beside those of fresh rows of the same process, and what a forest learns beside what can be learnt."""
    from sklearn.metrics import roc_auc_score

    from understudy.demo import demo_risk
    from understudy.evaluation.distributions import tvd
    from understudy.evaluation.inputs import open_tables
    from understudy.evaluation.prediction import score_label

    progress("comparing", 0.0)
    views = open_tables(real, synthetic, model.schema, fresh)
    rows = []
    for order, name in ((1, "TVD of columns"), (2, "TVD of pairs of columns")):
        found = tvd(views[0], views[1], model.schema, holdout=views[2], order=order)
        rows.append((name, f"{found.value:.3f}", f"{found.reference:.3f}", "0"))
    scores = score_label(
        views[0], views[1], model.schema, holdout=views[2], models=("random_forest",), jobs=2, progress=progress
    )
    auc = {table: scores.column(table)["random_forest"] for table in ("synthetic", "real")}
    best = roc_auc_score(fresh["readmitted"], demo_risk(seed=FRESH_SEED))
    return [*rows, ("AUC of readmission", f"{auc['synthetic']:.3f}", f"{auc['real']:.3f}", f"{best:.3f}")]


def _draw(folder: Path, real: "pd.DataFrame", synthetic: "pd.DataFrame", model: "Model") -> None:
    from understudy.cli.charts import draw_dependence, draw_histograms
    from understudy.evaluation.cells import cut_tables
    from understudy.evaluation.inputs import open_tables

    draw_histograms(real, synthetic, folder / "histograms.png")
    cut = cut_tables(*open_tables(real, synthetic, model.schema, None), bins=CHART_BINS)
    draw_dependence(cut.real, cut.synthetic, folder / "dependence.png")
