"""The classifiers and regressors that are trained on one table and tested on another, and how they are scored."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import OptionError

# The twelve of the DP-MERF comparison, in its order.
CLASSIFIERS = (
    "logistic_regression",
    "gaussian_naive_bayes",
    "bernoulli_naive_bayes",
    "linear_svm",
    "decision_tree",
    "lda",
    "adaboost",
    "bagging",
    "random_forest",
    "gradient_boosting",
    "mlp",
    "xgboost",
)
REGRESSORS = ("ridge", "lasso", "decision_tree", "random_forest", "gradient_boosting", "mlp")

FAST_CLASSIFIERS = ("logistic_regression", "decision_tree", "random_forest")
FAST_REGRESSORS = ("ridge", "decision_tree", "random_forest")

FEWEST_ROWS = 20

NOT_INSTALLED = "xgboost is not installed; install the bench extra to have it"


@dataclass(frozen=True)
class Prediction:
    """What a model says of the test rows: a score a class (or a number), or why there is none."""

    scores: NDArray[np.float32] | None
    undefined: str | None = None
    converged: bool = True


def check_names(names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise OptionError(f"models must be among {', '.join(known)}, got {name!r}")


def classify(name: str, rows: NDArray, labels: NDArray, test: NDArray, classes: int, seed: int) -> Prediction:
    """Trains one classifier; scores have a column for each of `classes`, also for those that the training rows lack."""
    if name == "xgboost" and find_spec("xgboost") is None:
        return Prediction(None, NOT_INSTALLED)
    seen, renumbered = np.unique(labels, return_inverse=True)
    if len(seen) < 2:
        return Prediction(None, "the training rows have one class only")
    if len(labels) < max(FEWEST_ROWS, 2 * len(seen)):
        return Prediction(None, f"at least {FEWEST_ROWS} training rows, and two a class, are needed")
    # Early stopping sets a tenth of the rows aside, and wants every class on both sides.
    lonely = np.bincount(renumbered).min() < 2 or len(labels) < 10 * len(seen)
    # Boosting grows a tree a class and round: with many classes, fewer rounds.
    rounds = max(10, min(100, 500 // len(seen)))
    model, converged = _fit(_classifier(name, seed, early_stopping=not lonely, rounds=rounds), rows, renumbered)
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(test)
    else:
        found = model.decision_function(test)
        if found.ndim == 1:
            found = np.column_stack([-found, found])
    # A class that was never seen ranks below all that were.
    scores = np.full((len(test), classes), found.min() - 1.0 if len(seen) < classes else 0.0, dtype=np.float32)
    scores[:, seen] = found
    return Prediction(scores, None, converged)


def regress(name: str, rows: NDArray, target: NDArray, test: NDArray, seed: int) -> Prediction:
    """Trains one regressor; the target is standardised for training, as networks and penalties expect."""
    if len(target) < FEWEST_ROWS:
        return Prediction(None, f"at least {FEWEST_ROWS} training rows are needed")
    centre, spread = float(target.mean()), float(target.std())
    if spread == 0:
        return Prediction(None, "the training target does not vary")
    model, converged = _fit(_regressor(name, seed), rows, (target - centre) / spread)
    return Prediction((model.predict(test) * spread + centre).astype(np.float32), None, converged)


def _fit(model: Any, rows: NDArray, target: NDArray) -> tuple[Any, bool]:
    """The trained model, and whether it ended before its largest number of steps."""
    model.fit(rows, target)
    last = model[-1] if hasattr(model, "steps") else model
    steps = getattr(last, "n_iter_", None)
    return model, steps is None or int(np.max(steps)) < last.max_iter


def _classifier(name: str, seed: int, *, early_stopping: bool, rounds: int) -> Any:
    from sklearn import ensemble, naive_bayes
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    makers: dict[str, Callable[[], Any]] = {
        "logistic_regression": lambda: _scaled(LogisticRegression(max_iter=300)),
        "gaussian_naive_bayes": naive_bayes.GaussianNB,
        # Centred columns: a level is on or off, a number above or below its mean.
        "bernoulli_naive_bayes": lambda: _scaled(naive_bayes.BernoulliNB(binarize=0.0)),
        # Where a class can be separated, the default's last thousand steps take minutes and change no ranking.
        "linear_svm": lambda: _scaled(LinearSVC(random_state=seed, dual=False, tol=1e-3, max_iter=50)),
        "decision_tree": lambda: DecisionTreeClassifier(random_state=seed),
        # Shrinkage: one-hot columns are linearly dependent, plain LDA would warn and wobble.
        "lda": lambda: _scaled(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
        "adaboost": lambda: ensemble.AdaBoostClassifier(random_state=seed),
        "bagging": lambda: ensemble.BaggingClassifier(random_state=seed),
        "random_forest": lambda: ensemble.RandomForestClassifier(random_state=seed),
        "gradient_boosting": lambda: ensemble.GradientBoostingClassifier(random_state=seed, n_estimators=rounds),
        # Early stopping: the default runs for minutes on an ordinary table and ends no better.
        "mlp": lambda: _scaled(
            MLPClassifier(
                random_state=seed,
                early_stopping=early_stopping,
                n_iter_no_change=5,
                max_iter=100 if early_stopping else 30,
            )
        ),
        "xgboost": lambda: _xgboost(seed, rounds),
    }
    return makers[name]()


def _regressor(name: str, seed: int) -> Any:
    from sklearn import ensemble
    from sklearn.linear_model import Lasso, Ridge
    from sklearn.neural_network import MLPRegressor
    from sklearn.tree import DecisionTreeRegressor

    makers: dict[str, Callable[[], Any]] = {
        "ridge": lambda: _scaled(Ridge()),
        "lasso": lambda: _scaled(Lasso(alpha=0.01)),
        "decision_tree": lambda: DecisionTreeRegressor(random_state=seed, min_samples_leaf=5),
        "random_forest": lambda: ensemble.RandomForestRegressor(random_state=seed, min_samples_leaf=5),
        "gradient_boosting": lambda: ensemble.GradientBoostingRegressor(random_state=seed),
        "boosted_trees": lambda: ensemble.HistGradientBoostingRegressor(random_state=seed, early_stopping=False),
        "mlp": lambda: _scaled(MLPRegressor(random_state=seed, early_stopping=True, n_iter_no_change=5, max_iter=100)),
    }
    return makers[name]()


def _xgboost(seed: int, rounds: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=1, n_estimators=rounds)


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def classification_scores(truth: NDArray, scores: NDArray, *, positive: int | None) -> dict[str, float]:
    """ROC AUC, PR AUC, F1 and accuracy; of the positive class if there are two, otherwise the mean over the classes
    that the test rows show.

    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> {key: round(value, 3) for key, value in classification_scores(np.array([0, 1, 1]), scores, positive=1).items()}
    {'roc_auc': 1.0, 'pr_auc': 1.0, 'f1': 0.667, 'accuracy': 0.667}
    """
    from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

    guess = scores.argmax(axis=1)
    watched = [positive] if positive is not None else np.unique(truth).tolist()
    if scores.shape[1] == 2:
        # One number a row: the lead of a class over the other.
        ranking = np.column_stack([scores[:, 0] - scores[:, 1], scores[:, 1] - scores[:, 0]])
    else:
        ranking = scores
    return {
        "roc_auc": float(np.mean([roc_auc_score(truth == one, ranking[:, one]) for one in watched])),
        "pr_auc": float(np.mean([average_precision_score(truth == one, ranking[:, one]) for one in watched])),
        "f1": float(np.mean([f1_score(truth == one, guess == one, zero_division=0.0) for one in watched])),
        "accuracy": float((guess == truth).mean()),
    }


def regression_scores(truth: NDArray, guess: NDArray) -> dict[str, float]:
    """R2 and RMSE.

    >>> regression_scores(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    {'r2': 0.0, 'rmse': 1.0}
    """
    residual = float(((truth - guess) ** 2).mean())
    return {"r2": 1.0 - residual / float(truth.var()), "rmse": residual**0.5}
