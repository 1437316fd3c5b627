"""Small contents of a report, made by hand, with a column whose name is an attack."""

import pytest

from understudy.evaluation.evaluation import Evaluation
from understudy.evaluation.result import MetricResult
from understudy.privacy import Budget, Gaussian, Ledger
from understudy.privacy.certificate import Certificate, Finding
from understudy.report import Dependence, Guarantee, Histogram

EVIL = "<script>alert(1)</script>"


def metric(name: str, value: float | None = 0.1, reference: float | None = 0.05, **more) -> MetricResult:
    scale = {"family": "distributions", "direction": "lower", "ideal": 0.0, "range": (0.0, 1.0)}
    undefined = "there is no such thing" if value is None else None
    return MetricResult(name=name, value=value, reference=reference, undefined=undefined, **(scale | more))


@pytest.fixture
def evaluation() -> Evaluation:
    models = {"tree": {"real": {"roc_auc": 0.8}, "synthetic": {"roc_auc": 0.71}}}
    details = {"label": EVIL, "measure": "roc_auc", "models": models}
    higher = {"family": "prediction", "direction": "higher", "ideal": 1.0}
    planes = {"explained": [0.4, 0.2], "real_points": [[0, 0], [1, 2]], "synthetic_points": [[0.5, 1.0]]}
    results = (
        metric("tvd_1way", 0.06, 0.05, per_column={EVIL: 0.02, "age": 0.1}, per_column_reference={"age": 0.03}),
        metric("tvd_2way", 0.12, 0.1, details={"worst": [{"columns": [EVIL, "age"], "value": 0.3}]}),
        metric("pca_marginal", 0.02, 0.01, details=planes),
        metric("exact_copies", 0.004, 0.006, family="disclosure", interval=(0.003, 0.005)),
        metric("spearman", None, None),
        metric("train_on_synthetic", 0.7125, 0.8, details=details, **higher),
    )
    return Evaluation(results=results, rows={"real": 400, "synthetic": 300, "holdout": 200}, which="fast", seed=0)


@pytest.fixture
def histograms() -> list[Histogram]:
    return [
        Histogram(
            name=EVIL, kind="categorical", ordered=False, cells=("a<b", "c"), synthetic=(0.4, 0.6), real=(0.5, 0.5)
        ),
        Histogram(
            name="age",
            kind="integer",
            ordered=True,
            cells=("0 to 10", "10 to 20", "20 to 30"),
            synthetic=(0.2, 0.5, 0.25),
            real=(0.3, 0.4, 0.2),
            missing_synthetic=0.05,
            missing_real=0.1,
        ),
    ]


@pytest.fixture
def dependence() -> Dependence:
    return Dependence(names=(EVIL, "age"), real=((0.0, 0.5), (0.5, 0.0)), synthetic=((0.0, 0.2), (0.2, 0.0)), of=2)


@pytest.fixture
def guarantee() -> Guarantee:
    ledger = Ledger(Budget(1.0, 1e-6))
    ledger.charge(Gaussian(6.0), "counting columns")
    certificate = Certificate.issue(method="made", ledger=ledger, arrays={}, schema_digest="0" * 64, seeded=False)
    findings = (Finding(True, "epsilon", "claimed and recomputed"),)
    return Guarantee(certificate=certificate, findings=findings, ledger=(("counting <columns>", "gaussian"),))
