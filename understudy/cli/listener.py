"""Progress on the screen: what is being done, how far it is, how long still, epsilon spent so far."""

from collections.abc import Iterator
from contextlib import contextmanager

from understudy.cli import screen
from understudy.progress import Progress


@contextmanager
def listening() -> Iterator[Progress]:
    """One moving line on a screen; in a file or pipe, one line a stage."""
    if not screen.err.is_terminal:
        yield _Lines()
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}"),
    )
    with Bar(*columns, console=screen.err, transient=True, expand=True) as bar:
        task = bar.add_task("starting", total=None, note="")
        shown = [""]

        def listen(stage: str, done: float, note: str = "") -> None:
            if stage != shown[0]:
                bar.reset(task)
                shown[0] = stage
            # A stage that cannot say how far it is gets a pulse.
            bar.update(task, description=stage, total=1.0 if done else None, completed=done, note=note)

        yield listen


class _Lines:
    """Says each stage once."""

    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, stage: str, done: float, note: str = "") -> None:
        if stage != self._stage:
            self._stage = stage
            screen.note(f"{stage} ..." + (f" ({note})" if note else ""))
