import json
import math
import re
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import CertificateError, OptionError
from understudy.privacy import (
    BoundedRange,
    Budget,
    Certificate,
    Gaussian,
    Ledger,
    NonPrivate,
    PoissonSampled,
    SelfComposed,
    arrays_digest,
)
from understudy.privacy.certificate import TOLERANCE, rounded_up
from understudy.privacy.ledger import Entry

ARRAYS = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "counts": np.array([1, 2], dtype=np.int64)}
SCHEMA = "ab" * 32


def issue(*events, seeded=False, budget=None):
    ledger = Ledger(budget or Budget(5.0, 1e-6))
    for event in events or (Gaussian(6.0), BoundedRange(0.2)):
        ledger.charge(event, "a purpose")
    return Certificate.issue(method="mixture", ledger=ledger, arrays=ARRAYS, schema_digest=SCHEMA, seeded=seeded)


def failed(certificate, **given):
    return [finding.what for finding in certificate.check(**given) if not finding.ok]


def test_a_true_certificate_holds():
    certificate = issue()
    assert failed(certificate, arrays=ARRAYS, schema_digest=SCHEMA, release=True) == []
    assert certificate.holds(arrays=ARRAYS, schema_digest=SCHEMA, release=True)
    assert certificate.epsilon == min(certificate.rdp, certificate.pld)
    assert certificate.analytic is None
    told = {finding.what: finding for finding in certificate.check()}
    assert told["analytic"].ok
    assert told["analytic"].detail == "has no formula for these uses"
    assert set(certificate.versions) == {"understudy", "dp-accounting", "python", "numpy"}


positive = st.floats(min_value=0.1, max_value=100.0)
one_event = st.one_of(
    st.builds(Gaussian, positive),
    st.builds(BoundedRange, positive),
    st.builds(SelfComposed, st.builds(PoissonSampled, st.floats(0.01, 1.0), st.builds(Gaussian, positive)), st.just(3)),
    st.builds(NonPrivate),
)
numbers = st.one_of(st.floats(min_value=0, max_value=1e9), st.just(math.inf))


@given(
    st.lists(one_event, max_size=4),
    numbers,
    st.none() | numbers,
    st.floats(1e-12, 0.5),
    st.sampled_from(["os-entropy", "seeded"]),
    st.text(min_size=1),
)
@settings(max_examples=60, deadline=None)
def test_json_round_trip(events, eps, pld, delta, rng, purpose):
    entries = tuple(type(issue_once().entries[0])(event, purpose) for event in events)
    certificate = replace(issue_once(), entries=entries, epsilon=eps, pld=pld, delta=delta, rng=rng)
    text = certificate.to_json()
    assert Certificate.from_json(text) == certificate
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


_CACHE = []


def issue_once():
    if not _CACHE:
        _CACHE.append(issue())
    return _CACHE[0]


def tampered(change):
    data = json.loads(issue_once().to_json())
    change(data)
    return Certificate.from_json(json.dumps(data))


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        (lambda d: d.update(epsilon=d["epsilon"] * 0.999), ["epsilon"]),
        (lambda d: d.update(epsilon=0), ["epsilon"]),
        (lambda d: d["entries"].append(d["entries"][0]), ["epsilon", "rdp", "pld"]),
        (lambda d: d["entries"][0]["event"].update(noise_multiplier=5.9), ["epsilon", "rdp", "pld"]),
        (lambda d: d.update(delta=d["delta"] / 2), ["epsilon", "rdp", "pld"]),
        (lambda d: d.update(rdp=d["rdp"] * 0.99), ["rdp"]),
        (lambda d: d.update(pld=d["pld"] * 0.99), ["pld"]),
        (lambda d: d.update(analytic=3.0), ["analytic"]),
        (lambda d: d["entries"].append({"event": {"type": "non-private"}, "purpose": "x"}), ["epsilon", "rdp", "pld"]),
        (lambda d: d.update(arrays_digest="0" * 64), ["released arrays"]),
        (lambda d: d.update(schema_digest="0" * 64), ["schema"]),
        (lambda d: d.update(rng="seeded"), ["randomness"]),
    ],
)
def test_tampering_that_breaks_the_sum_is_caught(change, caught):
    assert failed(tampered(change), arrays=ARRAYS, schema_digest=SCHEMA, release=True) == caught


def test_a_looser_claim_still_holds():
    assert failed(tampered(lambda d: d.update(epsilon=d["epsilon"] + 1))) == []
    assert failed(tampered(lambda d: d.update(epsilon=d["epsilon"] * (1 - TOLERANCE / 2)))) == []


def replaced(**changes):
    return lambda d: d.update(changes)


@pytest.mark.parametrize(
    "change",
    [
        replaced(epsilon=-1),
        replaced(epsilon="1"),
        replaced(epsilon=None),
        replaced(epsilon=True),
        replaced(rdp="none"),
        replaced(delta=0),
        replaced(delta=1),
        replaced(delta="inf"),
        replaced(rng="dice"),
        replaced(unit="one person"),
        replaced(neighbours="replace-one"),
        replaced(format=2),
        replaced(format="1"),
        replaced(method=""),
        replaced(created="yesterday"),
        replaced(created="2024-13-01"),
        replaced(versions=[]),
        replaced(versions={"numpy": 2}),
        replaced(schema_digest="ab"),
        replaced(arrays_digest="AB" * 32),
        replaced(entries={}),
        replaced(entries=["gaussian"]),
        replaced(entries=[{"event": {"type": "gaussian", "noise_multiplier": 0}, "purpose": "x"}]),
        replaced(entries=[{"event": {"type": "magic"}, "purpose": "x"}]),
        replaced(entries=[{"event": {"type": "non-private"}, "purpose": ""}]),
        replaced(entries=[{"event": {"type": "non-private"}, "purpose": "x", "note": "y"}]),
        replaced(note="hello"),
        lambda d: d.pop("epsilon"),
        lambda d: d.pop("unit"),
    ],
)
def test_malformed_certificates_are_refused(change):
    with pytest.raises(CertificateError):
        tampered(change)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_what_is_no_certificate_is_refused(text):
    with pytest.raises(CertificateError):
        Certificate.from_json(text)


def test_no_constants_and_no_repeated_keys():
    text = issue_once().to_json()
    with pytest.raises(CertificateError):
        Certificate.from_json(text.replace('"delta": 1e-06', '"delta": NaN'))
    with pytest.raises(CertificateError):
        Certificate.from_json(text.replace('"delta": 1e-06', '"delta": 1e-06, "delta": 0.5'))


def test_a_release_needs_fresh_noise_and_a_guarantee():
    assert failed(issue(seeded=True)) == []
    assert failed(issue(seeded=True), release=True) == ["randomness"]
    open_house = issue(NonPrivate(), budget=Budget(math.inf, 1e-6))
    assert open_house.epsilon == math.inf
    assert failed(open_house) == []
    assert failed(open_house, release=True) == ["private"]


def test_the_digest_sees_names_types_shapes_and_every_bit():
    base = arrays_digest(ARRAYS)
    assert arrays_digest(dict(reversed(ARRAYS.items()))) == base
    assert arrays_digest({k: np.asfortranarray(v) for k, v in ARRAYS.items()}) == base
    assert arrays_digest({k: v.astype(v.dtype.newbyteorder(">")) for k, v in ARRAYS.items()}) == base
    weights = ARRAYS["weights"]
    nudged = weights.copy()
    nudged[1, 2] = np.nextafter(nudged[1, 2], 9)
    others = [
        {},
        {"counts": ARRAYS["counts"]},
        ARRAYS | {"weights": nudged},
        ARRAYS | {"weights": weights.reshape(3, 2)},
        ARRAYS | {"weights": weights.astype(np.float64)},
        ARRAYS | {"weights": weights.view(np.int32)},
        {"weight": weights, "counts": ARRAYS["counts"]},
    ]
    digests = [arrays_digest(other) for other in others]
    assert len({base, *digests}) == len(others) + 1
    assert arrays_digest({"a": np.float64(3)}) != arrays_digest({"a": np.array([3.0])})
    with pytest.raises(OptionError, match="numbers"):
        arrays_digest({"a": np.array(["x"])})


def test_the_statement_is_two_sentences_that_never_understate():
    statement = issue(Gaussian(6.0)).statement()
    assert statement.count(". ") == 1
    assert "epsilon 0.686" in statement  # 0.68578, rounded up
    assert "1.99 times" in statement  # exp(0.68578) = 1.98532
    assert "not for release" in issue(seeded=True).statement()
    assert "without privacy" in issue(NonPrivate(), budget=Budget(math.inf, 1e-6)).statement()
    assert "exp(" in replace(issue_once(), epsilon=1e4).statement()


@given(value=st.floats(1e-12, 1e3), digits=st.integers(1, 8))
def test_a_claim_is_rounded_up(value, digits):
    shown = float(rounded_up(value, digits))
    assert value * (1 - 1e-9) <= shown <= value * (1 + 1.01 * 10.0 ** (1 - digits))


def test_no_words_about_a_certificate_claim_a_smaller_delta_or_epsilon():
    certificate = replace(issue_once(), epsilon=1.00004, delta=1 / 7e6)  # rounded to the nearest: 1 and 1.42857e-07
    for text in (certificate.statement(), repr(certificate)):
        said = {name: float(re.search(rf"{name} ([^,)]+)", text)[1]) for name in ("epsilon", "delta")}
        assert said["epsilon"] >= 1.00004
        assert said["delta"] >= 1 / 7e6


def test_certificates_are_frozen_and_complete():
    with pytest.raises(AttributeError):
        issue_once().epsilon = 0.1
    assert set(json.loads(issue_once().to_json())) == {f.name for f in fields(Certificate)}


def test_checking_needs_no_noise_library():
    code = (
        "import sys; from understudy.privacy.certificate import Certificate; "
        "assert not {'opendp', 'dp_accounting', 'jax', 'sklearn', 'scipy'} & set(sys.modules); "
        "c = Certificate.from_json(sys.stdin.read()); assert c.holds(); "
        "assert not {'opendp', 'jax', 'sklearn'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=issue_once().to_json(), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_certificate_that_lists_nothing_does_not_hold():
    empty = replace(issue(Gaussian(6.0)), entries=(), epsilon=0.0, rdp=None, pld=None, analytic=None)
    assert failed(empty) == ["uses of the rows"]


@pytest.mark.parametrize("noise", [1e-200, 1e200])
def test_numbers_that_no_accountant_can_hold_are_a_no(noise):
    odd = replace(issue(Gaussian(6.0)), entries=(Entry(Gaussian(noise), "a purpose"),))
    assert failed(odd) == ["epsilon"]


def test_one_use_is_told_as_one():
    assert "The one use of the rows was counted" in issue(Gaussian(6.0)).statement()
