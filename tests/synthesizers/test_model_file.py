"""Model files: damage and tampering end in one clear refusal, or in a certificate that does not hold."""

import dataclasses
import io
import json
import math
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from understudy.errors import CertificateError, ModelFileError, OptionError
from understudy.privacy import arrays_digest
from understudy.schema import Schema
from understudy.synthesizers import model_file
from understudy.synthesizers.api import Model, fit, load
from understudy.synthesizers.mixture.released import Released

SCHEMA = Schema.loads("""
rows: 100
label: b
columns:
  a: {kind: integer, low: 0, high: 5, missing: true}
  b: {kind: boolean}
  c: {kind: categorical, values: [x, y, z]}
""")


def sound_file(path: Path, method: str) -> Path:
    """A model of each method; for the mixture's file no fit is needed, any probabilities do."""
    frame = pd.DataFrame({"a": np.arange(90) % 6, "b": np.arange(90) % 2 == 0, "c": np.resize(["x", "y", "z"], 90)})
    model = fit(frame, SCHEMA, method="independent", seed=1)
    if method == "independent":
        model.save(path)
        return path
    rng = np.random.default_rng(0)
    released = Released(
        schema=SCHEMA,
        weights=rng.dirichlet(np.ones(4)).reshape(2, 2),
        probabilities=np.concatenate([rng.dirichlet(np.ones(n), (2, 2)) for n in (4, 3)], axis=2),
        groups={"a": np.array([0, 0, 1, 1, 2, 2, 3]), "c": np.arange(3)},
        fine=model.released.fine,
        label="b",
        rows=model.rows,
    )
    digest = arrays_digest(model_file.certified_arrays(released.arrays(), released.facts(), {}))
    certificate = dataclasses.replace(model.certificate, method=method, arrays_digest=digest)
    Model(SCHEMA, method, {}, certificate, released).save(path)
    return path


@pytest.fixture(scope="module", params=["independent", "mixture"])
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sound_file(tmp_path_factory.mktemp("sound") / "model.understudy", request.param)


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def recertified(members: dict[str, bytes]) -> dict[str, bytes]:
    """With the digests of these contents: what another version or a forger would have written."""
    model, certificate = json.loads(members["model.json"]), json.loads(members["certificate.json"])
    arrays = model_file.certified_arrays(load_arrays(members["arrays.safetensors"]), model["facts"], model["config"])
    certificate["arrays_digest"] = arrays_digest(arrays)
    certificate["schema_digest"] = Schema.loads(members["schema.yaml"].decode()).digest()
    return members | {"certificate.json": json.dumps(certificate).encode()}


def holds(path: Path) -> bool:
    """What `understudy verify` asks."""
    parts = model_file.read(path)
    arrays = model_file.certified_arrays(parts.arrays, parts.facts, parts.config)
    return parts.certificate.holds(arrays=arrays, schema_digest=parts.schema.digest())


def test_a_sound_file_holds_and_draws(sound: Path):
    assert holds(sound)
    assert len(load(sound).sample(5, seed=0)) == 5


# --- damage ---


def test_a_file_cut_short_anywhere_is_refused(sound: Path, tmp_path: Path):
    data = sound.read_bytes()
    for length in {0, 1, 30, *np.linspace(40, len(data) - 1, 40).astype(int).tolist()}:
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(ModelFileError, match="cut short"):
            load(tmp_path / "cut")


def test_a_flipped_bit_is_refused_or_fails_the_certificate(sound: Path, tmp_path: Path):
    """Anywhere in the file: no other error than ours, and never a changed model whose certificate still holds."""
    data = sound.read_bytes()
    reference = load(sound).sample(20, seed=0)
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.integers(0, len(data), 400):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        path = tmp_path / "flipped"
        path.write_bytes(changed)
        try:
            if holds(path):
                pd.testing.assert_frame_equal(load(path).sample(20, seed=0), reference)
        except (ModelFileError, CertificateError):
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("member", model_file.MEMBERS)
@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"[]", b"\xff\xfe", b"[" * 100_000, b"\x80\x04N."])
def test_a_member_of_nonsense_is_refused(sound: Path, tmp_path: Path, member: str, content: bytes):
    path = write_members(tmp_path / "nonsense", members_of(sound) | {member: content})
    with pytest.raises((ModelFileError, CertificateError)):
        load(path)


@pytest.mark.parametrize("change", [{"config": {"steps": 5}}, {"facts": {"rows": 7, "label": "b"}}])
def test_changed_settings_and_facts_fail_the_certificate(sound: Path, tmp_path: Path, change: dict):
    members = members_of(sound)
    model = json.loads(members["model.json"])
    assert any(model[key] != value for key, value in change.items())
    members["model.json"] = json.dumps(model | change).encode()
    assert not holds(write_members(tmp_path / "changed", members))


@pytest.mark.parametrize("change", [{"remark": "no digest sees me"}, {"config": []}, {"format": True}])
def test_what_no_digest_covers_is_refused(sound: Path, tmp_path: Path, change: dict):
    members = members_of(sound)
    members["model.json"] = json.dumps(json.loads(members["model.json"]) | change).encode()
    with pytest.raises(ModelFileError):
        model_file.read(write_members(tmp_path / "changed", members))
    commented = members_of(sound)
    commented["schema.yaml"] += b"# no digest sees me\n"
    with pytest.raises(ModelFileError):
        model_file.read(write_members(tmp_path / "commented", commented))


@pytest.mark.parametrize("member", model_file.MEMBERS)
def test_a_missing_or_additional_member_is_refused(sound: Path, tmp_path: Path, member: str):
    members = members_of(sound)
    more = write_members(tmp_path / "more", members | {f"{member}.bak": members[member]})
    del members[member]
    for path in (write_members(tmp_path / "less", members), more):
        with pytest.raises(ModelFileError, match="not a model file"):
            load(path)


def test_a_member_twice_is_refused(sound: Path, tmp_path: Path):
    members = members_of(sound)
    with zipfile.ZipFile(tmp_path / "twice", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("model.json", members["model.json"])
    with pytest.raises(ModelFileError):
        load(tmp_path / "twice")


def test_files_that_are_no_models_are_refused(tmp_path: Path):
    (tmp_path / "pickle").write_bytes(pickle.dumps({"weights": [1.0]}))
    (tmp_path / "text").write_text("age,town\n1,2\n")
    for name, message in (("pickle", "not a model file"), ("text", "not a model file"), ("absent", "no such file")):
        with pytest.raises(ModelFileError, match=message) as caught:
            load(tmp_path / name)
        assert caught.value.__cause__ is None
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path)


def test_a_small_file_that_unpacks_into_all_of_memory_is_refused(sound: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(model_file, "LARGEST_MEMBER", 1 << 16)
    path = write_members(tmp_path / "bomb", members_of(sound) | {"arrays.safetensors": bytes(1 << 20)})
    assert path.stat().st_size < 1 << 14
    with pytest.raises(ModelFileError):
        load(path)


# --- tampering ---


def change_json(member: str, **changes: Any) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda members: {member: json.dumps(json.loads(members[member]) | changes).encode()}


def change_arrays(change: Callable[[dict[str, np.ndarray]], None]) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    def changed(members: dict[str, bytes]) -> dict[str, bytes]:
        arrays = {name: array.copy() for name, array in load_arrays(members["arrays.safetensors"]).items()}
        change(arrays)
        return {"arrays.safetensors": save_arrays(arrays)}

    return changed


def nudge(arrays: dict[str, np.ndarray]) -> None:
    arrays["fine.0"][0] += 1e-9


TAMPERED = {
    "a count": change_arrays(nudge),
    "another array": change_arrays(lambda arrays: arrays.update(extra=np.ones(3))),
    "the number of rows": lambda members: {
        "model.json": json.dumps(
            (model := json.loads(members["model.json"])) | {"facts": model["facts"] | {"rows": 12345}}
        ).encode()
    },
    "a bound": lambda members: {"schema.yaml": members["schema.yaml"].replace(b"high: 5", b"high: 5, log: true")},
    "the claim": change_json("certificate.json", epsilon=0.1),
    "the delta": change_json("certificate.json", delta=1e-12),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampering_with_what_the_certificate_covers_breaks_it(sound: Path, tmp_path: Path, what: str):
    members = members_of(sound)
    path = write_members(tmp_path / "tampered", members | TAMPERED[what](members))
    assert not holds(path)


@pytest.mark.parametrize(
    ("what", "part"),
    [
        ("a count", "in the released arrays, facts or settings"),
        ("another array", "in the released arrays, facts or settings"),
        ("the number of rows", "in the released arrays, facts or settings"),
        ("a bound", r"in the schema \(schema.yaml\): "),
    ],
)
def test_an_altered_file_is_not_loaded(sound: Path, tmp_path: Path, what: str, part: str):
    members = members_of(sound)
    path = write_members(tmp_path / "tampered", members | TAMPERED[what](members))
    with pytest.raises(ModelFileError, match=part) as caught:
        load(path)
    assert "take the file from its maker again" in str(caught.value)
    assert "understudy verify" in str(caught.value)
    model_file.read(path)  # what `verify` looks into is still there for it


def test_all_altered_parts_are_named(sound: Path, tmp_path: Path):
    members = members_of(sound)
    both = members | TAMPERED["a count"](members) | TAMPERED["a bound"](members)
    with pytest.raises(ModelFileError, match=r"in the schema .* and the released arrays"):
        load(write_members(tmp_path / "both", both))


def test_contents_that_no_digest_can_be_made_of_are_damage(sound: Path, tmp_path: Path):
    members = members_of(sound)
    model = json.loads(members["model.json"])
    model["facts"]["rows"] = math.nan
    path = write_members(tmp_path / "nan", members | {"model.json": json.dumps(model).encode()})
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_a_claim_must_follow_from_its_entries(sound: Path, tmp_path: Path):
    members = members_of(sound)
    certificate = json.loads(members["certificate.json"])
    certificate["entries"][0]["event"]["noise_multiplier"] /= 2
    path = write_members(tmp_path / "entry", members | {"certificate.json": json.dumps(certificate).encode()})
    assert not holds(path)


REFUSED = {
    "format": (change_json("model.json", format=99), ModelFileError, "its format is not 1"),
    "no format": (lambda m: {"model.json": b'{"method": "mixture"}'}, ModelFileError, "damaged"),
    "another method's certificate": (change_json("certificate.json", method="other"), ModelFileError, "another method"),
    "a method that is not known": (
        lambda m: change_json("model.json", method="gone")(m) | change_json("certificate.json", method="gone")(m),
        OptionError,
        "not known",
    ),
    "an array gone": (change_arrays(lambda arrays: arrays.pop("fine.1")), ModelFileError, "damaged"),
    "facts gone": (change_json("model.json", facts={}), ModelFileError, "damaged"),
    "no schema": (lambda m: {"schema.yaml": b"columns: {}"}, ModelFileError, "damaged"),
}
DIGESTED = ("an array gone", "facts gone")  # whole in themselves, but no model


@pytest.mark.parametrize("what", REFUSED)
def test_files_that_do_not_fit_together_are_refused(sound: Path, tmp_path: Path, what: str):
    change, kind, message = REFUSED[what]
    members = members_of(sound)
    changed = members | change(members)
    path = write_members(tmp_path / "wrong", recertified(changed) if what in DIGESTED else changed)
    with pytest.raises(kind, match=message) as caught:
        load(path)
    assert caught.value.__cause__ is None


def reshape(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return change_arrays(lambda arrays: arrays.update({name: np.ascontiguousarray(change(arrays[name]))}))


@pytest.mark.parametrize(
    ("method", "name", "change"),
    [
        ("independent", "fine.0", lambda a: a[:-1]),
        ("independent", "fine.2", lambda a: np.append(a, 1.0)),
        ("independent", "fine.1", lambda a: -a),
        ("independent", "fine.1", lambda a: a * np.nan),
        ("independent", "fine.1", lambda a: a * 0),
        ("mixture", "fine.0", lambda a: a[:-1]),
        ("mixture", "groups.0", lambda a: a[:-1]),
        ("mixture", "groups.0", lambda a: a + 1),
        ("mixture", "groups.0", lambda a: -a),
        ("mixture", "weights", lambda a: a[:, :1]),
        ("mixture", "weights", lambda a: a * np.nan),
        ("mixture", "probabilities", lambda a: a[:, :, :-1]),
        ("mixture", "probabilities", lambda a: a[0]),
        ("mixture", "probabilities", lambda a: -a),
    ],
)
def test_arrays_that_make_no_model_are_refused_when_loaded(tmp_path: Path, method: str, name: str, change: Callable):
    """Not when a row is drawn, with an error about indices, nor never, with rows that mean nothing."""
    members = members_of(sound_file(tmp_path / "sound", method))
    path = write_members(tmp_path / "odd", recertified(members | reshape(name, change)(members)))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


# --- writing ---


def test_a_file_is_whole_or_absent(sound: Path, tmp_path: Path, monkeypatch):
    model = load(sound)
    target = tmp_path / "model.understudy"
    target.write_bytes(b"what was there before")

    class FullDiskError(Exception):
        pass

    def fail(*_: Any, **__: Any) -> None:
        raise FullDiskError

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(FullDiskError):
        model.save(target)
    assert target.read_bytes() == b"what was there before"
    assert [path.name for path in tmp_path.iterdir()] == ["model.understudy"]


def test_arrays_in_any_layout_come_back_the_same(sound: Path, tmp_path: Path):
    model = load(sound)
    strided = {name: np.asfortranarray(np.repeat(array, 2, axis=-1)[..., ::2]) for name, array in
               model.released.arrays().items()}  # fmt: skip
    parts = model_file.Parts(
        method=model.method,
        config=model.config,
        facts=model.released.facts(),
        arrays=strided,
        schema=model.schema,
        certificate=model.certificate,
    )
    model_file.write(tmp_path / "strided", parts)
    assert holds(tmp_path / "strided")


def test_nothing_in_the_file_is_code(sound: Path):
    for data in members_of(sound).values():
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError)):
            pickle.load(io.BytesIO(data))
