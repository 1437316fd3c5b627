"""`understudy report`: one standalone page about synthetic rows, for the steward or for the public."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import screen
from understudy.cli.listener import listening
from understudy.cli.options import SchemaOption, TableArgument, check_output
from understudy.errors import CertificateError, OptionError
from understudy.schema import Schema

if TYPE_CHECKING:
    from understudy.evaluation.evaluation import Evaluation
    from understudy.evaluation.view import View
    from understudy.progress import Progress
    from understudy.report import Audited, Dependence, Guarantee

# A heat map of more columns than this cannot be read, and takes long to count.
MOST_COLUMNS = 40
PAIR_BINS = 8
PUBLIC_ROWS = 20_000
PUBLIC_IMAGES = 2_000


def report(
    table: TableArgument,
    synthetic: Annotated[
        Path, typer.Argument(metavar="SYNTHETIC", help="Synthetic rows: CSV, Parquet; images: .npz, folder.")
    ],
    schema: SchemaOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="HTML", help="Where to write the page.")],
    holdout: Annotated[
        Path | None,
        typer.Option("--holdout", metavar="TABLE", help="Real rows that the fit never saw: the yardstick."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL", help="The model file, for its certificate.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All metrics (minutes), not the fast ones (seconds).")] = False,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FILE", help="What `understudy audit -o` wrote, to show as well.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Draw rows from --model; neither table is opened.")] = False,
) -> None:
    """Write one HTML page: the guarantee, how good the synthetic rows are, every column, pairs, predictions.

    The page needs no network. Without --public it is computed from private rows: outside the guarantee, for the data
    steward alone.
    """
    check_output(output)
    if output.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"output {str(output)!r}: the name must end in .html")
    if public and (holdout is not None or full):
        raise OptionError("--public reads no real rows: leave out --holdout and --full")
    if public and model is None:
        raise OptionError("--public needs --model: without a certificate nothing is known to be fit for the public")
    facts = Schema.load(schema)
    guarantee = None if model is None else guarantee_of(model, facts, release=public)
    audited = None if audit is None else audited_of(audit, guarantee)
    with listening() as progress:
        progress("reading the tables", 0.0)
        if public:
            page = _public_page(model, facts, guarantee, _title(synthetic), audited)
        else:
            title = _title(synthetic)
            page = steward_page(
                table, synthetic, facts, holdout, guarantee, title=title, full=full, progress=progress, audited=audited
            )
    from understudy.table.written import written_whole

    with written_whole(output, mode=0o666 if public else 0o600) as file:
        file.write(page.encode("utf-8", "replace"))
    if public:
        screen.say(f"Wrote {output}: made from the model and its certificate alone.")
    else:
        screen.say(f"Wrote {output}, computed from real rows: for the data steward alone, outside the guarantee.")


def guarantee_of(model: Path, schema: Schema, *, release: bool) -> "Guarantee":
    from understudy.cli.verify import check_setting
    from understudy.privacy.events import told
    from understudy.report import Guarantee
    from understudy.synthesizers import model_file

    parts = model_file.read(model)
    arrays = model_file.certified_arrays(parts.arrays, parts.facts, parts.config)
    findings = parts.certificate.check(arrays=arrays, schema_digest=schema.digest(), release=release)
    if release:
        # The very checks of `verify --release`: a page for the public must not be easier to get than a release.
        findings += check_setting(parts)
    found = Guarantee(
        certificate=parts.certificate,
        findings=tuple(findings),
        ledger=tuple((entry.purpose, told(entry.event.to_dict())) for entry in parts.certificate.entries),
    )
    if release and not found.holds:
        failed = "; ".join(f"{finding.what}: {finding.detail}" for finding in findings if not finding.ok)
        raise CertificateError(f"model {str(model)!r}: not fit for a public report ({failed}); leave out --public")
    return found


def audited_of(path: Path, guarantee: "Guarantee | None") -> "Audited":
    """An audit file as the page shows it; one of another method or claim than the model's says so."""
    from understudy.auditing.result import Audit
    from understudy.cli.audit import shown_bounds
    from understudy.report import Audited, AuditedStep, Shown

    problem = ""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problem = "it is not a text file"
    except OSError as error:
        problem = f"it cannot be read ({error.strerror})"
    if problem:
        raise OptionError(f"audit {str(path)!r}: {problem}; `understudy audit -o` writes one")
    found = Audit.from_json(text)
    note = ""
    if guarantee is not None:
        own = guarantee.certificate
        if own.method != found.method or found.epsilon < own.epsilon * (1 - 1e-3):
            note = (
                f"The audit is of method {found.method} at epsilon {found.epsilon:g}, the model of method {own.method} "
                f"at epsilon {own.epsilon:.3g}: it says nothing about this model."
            )
    shown = []
    for game in found.games:
        for one in game.shown:
            counted, gaussian = shown_bounds(one.bounds, game.gaussian)
            proven = [b.epsilon for b in one.bounds if game.gaussian or b.mu is None]
            shown.append(
                Shown(
                    canary=game.canary,
                    view=one.view,
                    score=one.score or "-",
                    runs=min(game.runs),
                    bound=max(proven, default=0.0),
                    counted=counted,
                    gaussian=gaussian,
                )
            )
    return Audited(
        epsilon=found.epsilon,
        confidence=found.confidence,
        holds=found.holds,
        statement=found.statement(),
        shown=tuple(shown),
        steps=tuple(
            AuditedStep(words=s.words, runs=min(s.bound.runs), delta=s.delta, epsilon=s.epsilon, bound=s.bound.epsilon)
            for s in found.steps
        ),
        note=note,
    )


def _public_page(model: Path, schema: Schema, guarantee: "Guarantee", title: str, audited: "Audited | None") -> str:
    """Rows are drawn from the model itself: a file given by mistake (the real one!) could not be told from them."""
    from understudy.cli.histograms import histograms
    from understudy.cli.pictures import pictures
    from understudy.evaluation.inputs import open_table
    from understudy.report import public_report
    from understudy.synthesizers import api

    rows = api.load(model).sample(PUBLIC_IMAGES if schema.images else PUBLIC_ROWS, seed=0)
    view = open_table(rows, schema, role="synthetic")
    shown = pictures(view, None, schema)
    return public_report(histograms(view, None), title=title, guarantee=guarantee, pictures=shown, audited=audited)


def steward_page(
    table: Any,
    synthetic: Any,
    schema: Schema,
    holdout: Any,
    guarantee: "Guarantee | None",
    *,
    title: str,
    full: bool,
    progress: "Progress",
    audited: "Audited | None" = None,
) -> str:
    """The steward's page of two tables (paths or frames), computed from real rows."""
    from understudy.cli.histograms import histograms
    from understudy.cli.pictures import pictures
    from understudy.evaluation import suite
    from understudy.evaluation.inputs import open_tables
    from understudy.report import steward_report

    views = open_tables(table, synthetic, schema, holdout)
    which = "full" if full else "fast"
    found = suite.evaluate(views[0], views[1], schema, holdout=views[2], which=which, progress=progress)
    progress("drawing charts", 0.0)
    return steward_report(
        found,
        histograms(views[1], views[0]),
        _dependence(views[0], views[1], found),
        title=title,
        guarantee=guarantee,
        pictures=pictures(views[1], views[0], schema),
        audited=audited,
    )


def _dependence(real: "View", synthetic: "View", found: "Evaluation") -> "Dependence | None":
    """Association of pairs among the columns that are furthest off, in the order of the schema."""
    from understudy.cli.charts import dependence
    from understudy.evaluation.cells import cut_tables
    from understudy.report import Dependence

    if len(real.facts) < 2:
        return None
    worst = set(found["tvd_1way"].worst_columns(MOST_COLUMNS))
    names = tuple(name for name in real.facts if name in worst)
    cut = cut_tables(real, synthetic, None, bins=PAIR_BINS)
    matrices = [dependence({name: cells[name] for name in names}).tolist() for cells in (cut.real, cut.synthetic)]
    first, second = (tuple(map(tuple, matrix)) for matrix in matrices)
    return Dependence(names=names, real=first, synthetic=second, of=len(real.facts))


def _title(synthetic: Path) -> str:
    return f"Report on {synthetic.name}"
