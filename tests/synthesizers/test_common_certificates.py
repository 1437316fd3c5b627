"""Of every method: the certificate holds, and says who may see the model."""

import math
from pathlib import Path

from common_helpers import QUICK, SCHEMA, SEED, check_certificate, check_form, quick_fit

from understudy.privacy.accountant import flatten
from understudy.synthesizers.api import Model, make_budget, make_config, method_module


def test_the_certificate_holds_within_what_was_asked(model: Model):
    assert 0 < model.certificate.epsilon <= 1.0 * (1 + 1e-9)
    assert model.certificate.delta == 1e-6
    assert all(finding.ok for finding in check_certificate(model))
    assert model.certificate.method == model.method
    assert model.certificate.entries


def test_a_plan_tells_what_the_fit_charges(model: Model):
    """To the last digit: both come from one plan."""
    module = method_module(model.method)
    if not hasattr(module, "planned"):
        assert model.method in ("mixture", "independent")  # whose tables `understudy plan` tells one by one
        return
    config = make_config(module, QUICK[model.method])
    told = module.planned(config, SCHEMA.learnt(), make_budget(SCHEMA, 1.0, None))
    charged = flatten(entry.event for entry in model.certificate.entries)
    assert flatten(entry.event for entry in told.entries) == charged


def test_a_seeded_fit_repeats_bit_for_bit_and_may_not_leave(model: Model, saved: Path, tmp_path: Path):
    again = quick_fit(model.method)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()
    other = quick_fit(model.method, seed=SEED + 1)
    assert other.certificate.arrays_digest != model.certificate.arrays_digest
    assert [f.what for f in check_certificate(model, release=True) if not f.ok] == ["randomness"]


def test_unseeded_fits_differ_and_may_leave(method: str):
    one, two = quick_fit(method, seed=None), quick_fit(method, seed=None)
    assert one.certificate.arrays_digest != two.certificate.arrays_digest
    assert all(finding.ok for finding in check_certificate(one, release=True))
    check_form(one.sample(20), SCHEMA, 20)


def test_an_infinite_epsilon_promises_nothing(method: str):
    model = quick_fit(method, epsilon=math.inf)
    check_form(model.sample(100, seed=0), SCHEMA, 100)
    assert model.certificate.epsilon == math.inf
    assert "without privacy" in model.certificate.statement()
    assert "private" in [f.what for f in check_certificate(model, release=True) if not f.ok]
    assert all(finding.ok for finding in check_certificate(model))


def test_a_model_shows_its_guarantee_and_no_rows(model: Model):
    assert repr(model).startswith(f"Model({model.method}, 9 columns, epsilon ")
    assert "array" not in repr(model)
