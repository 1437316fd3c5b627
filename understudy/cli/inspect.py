"""`understudy inspect`: what a model file holds."""

import json as json_text

from understudy.cli import screen
from understudy.cli.options import JsonOption, ModelArgument
from understudy.schema.shown import rule_words


def inspect(model: ModelArgument, json: JsonOption = False) -> None:
    """Show what is in a model file: method, guarantee, every use of the rows, columns, released arrays."""
    from understudy.privacy.certificate import rounded_up
    from understudy.privacy.events import told
    from understudy.synthesizers import model_file

    parts = model_file.read(model)
    certificate = parts.certificate
    if json:
        screen.print_json(
            {
                "method": parts.method,
                "config": parts.config,
                "facts": parts.facts,
                "arrays": {name: list(array.shape) for name, array in parts.arrays.items()},
                "schema": json_text.loads(parts.schema.dumps(style="json")),
                "certificate": json_text.loads(certificate.to_json()),
            }
        )
        return
    epsilon, delta = rounded_up(certificate.epsilon, 6), rounded_up(certificate.delta, 6)
    numbers = sum(array.size for array in parts.arrays.values())
    screen.print_facts(
        [
            ("method", parts.method),
            ("settings", ", ".join(f"{name}={value}" for name, value in parts.config.items()) or "none"),
            ("guarantee", f"epsilon {epsilon}, delta {delta}, {certificate.neighbours}"),
            ("noise", certificate.rng),
            ("made", f"{certificate.created}, version {certificate.versions.get('understudy', 'unknown')}"),
            ("rows", f"about {parts.facts['rows']:,}, as released with noise" if "rows" in parts.facts else "-"),
            ("released", f"{len(parts.arrays)} arrays, {numbers:,} numbers"),
            ("schema", f"{len(parts.schema.columns)} columns, label {parts.schema.label or 'none'}"),
        ]
    )
    screen.say()
    screen.print_table(
        ("use of the rows", "event"),
        [(entry.purpose, told(entry.event.to_dict())) for entry in certificate.entries],
    )
    screen.say()
    screen.print_table(("column", "kind"), [(name, column.kind) for name, column in parts.schema.columns.items()])
    if parts.schema.rules:
        screen.say()
        screen.print_table(("rule that all rows hold",), [(rule_words(rule),) for rule in parts.schema.rules])
