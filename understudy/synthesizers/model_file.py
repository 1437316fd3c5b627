"""One `.understudy` file: a zip of JSON, YAML and safetensors. No pickle, no code, no private row."""

import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from understudy.errors import ModelFileError, OptionError, SchemaError
from understudy.privacy.certificate import Certificate, arrays_digest
from understudy.schema import Schema
from understudy.table.written import written_whole

FORMAT = 1
MEMBERS = ("model.json", "arrays.safetensors", "schema.yaml", "certificate.json")
_KEYS = ("format", "method", "config", "facts")
LARGEST_MEMBER = 8 << 30  # a small file must not unpack into all of memory


@dataclass(frozen=True, eq=False)
class Parts:
    """What a model file holds."""

    method: str
    config: dict[str, Any]
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]
    schema: Schema
    certificate: Certificate


def certified_arrays(
    arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """What the certificate's digest covers: the arrays, and the facts and settings beside them as bytes."""
    text = json.dumps({"facts": facts, "config": config}, sort_keys=True, allow_nan=False).encode()
    return {**arrays, "model.json": np.frombuffer(text, dtype=np.uint8)}


def write(path: str | PathLike[str], parts: Parts) -> None:
    """Writes the file beside its place and renames it, so that it is whole or absent."""
    from safetensors.numpy import save

    # safetensors writes the buffer of a strided array as it lies: only contiguous ones come back the same.
    arrays = {name: np.ascontiguousarray(array) for name, array in parts.arrays.items()}
    model = dict(zip(_KEYS, (FORMAT, parts.method, parts.config, parts.facts), strict=True))
    contents = {
        "model.json": json.dumps(model, indent=2, sort_keys=True).encode(),
        "arrays.safetensors": save(arrays),
        "schema.yaml": parts.schema.dumps().encode(),
        "certificate.json": parts.certificate.to_json().encode(),
    }
    with written_whole(Path(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in MEMBERS:
            # A fixed date: equal models give equal files.
            archive.writestr(zipfile.ZipInfo(name), contents[name], zipfile.ZIP_DEFLATED)


def read(path: str | PathLike[str]) -> Parts:
    """Reads and cross-checks the file; whatever is wrong with it becomes a ModelFileError."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    with refusing_damage(path, SafetensorError):
        members = _members(Path(path))
        model = json.loads(members["model.json"])
        if type(model["format"]) is not int or model["format"] != FORMAT:
            raise ModelFileError(f"model {str(path)!r}: its format is not {FORMAT}; use a newer version")
        schema = Schema.loads(members["schema.yaml"].decode())
        if not isinstance(model["config"], dict) or not isinstance(model["facts"], dict) or len(model) != len(_KEYS):
            raise ValueError
        if schema.dumps().encode() != members["schema.yaml"]:
            raise ValueError  # comments and the like, which no digest covers
        certificate = Certificate.from_json(members["certificate.json"].decode())
        parts = Parts(
            method=model["method"],
            config=model["config"],
            facts=model["facts"],
            arrays=load(members["arrays.safetensors"]),
            schema=schema,
            certificate=certificate,
        )
        if parts.method != certificate.method:
            raise ModelFileError(f"model {str(path)!r}: the certificate is for another method; ask for the file again")
        return parts


def check_unaltered(path: str | PathLike[str], parts: Parts) -> None:
    """Refuses contents that are not those that the certificate names, by its digests alone.

    Epsilon is not recomputed: that can take seconds, and a draw from the model makes no claim. `verify` does both.
    """
    with refusing_damage(path, OptionError):
        certificate = parts.certificate
        same_schema = parts.schema.digest() == certificate.schema_digest
        covered = certified_arrays(parts.arrays, parts.facts, parts.config)
        same_arrays = arrays_digest(covered) == certificate.arrays_digest
    altered = [] if same_schema else ["the schema (schema.yaml)"]
    altered += [] if same_arrays else ["the released arrays, facts or settings (arrays.safetensors, model.json)"]
    if altered:
        raise ModelFileError(
            f"model {str(path)!r}: altered after it was made, in {' and '.join(altered)}: its certificate names other "
            "contents; take the file from its maker again, or see `understudy verify` for details"
        )


@contextmanager
def refusing_damage(path: str | PathLike[str], *more: type[Exception]) -> Iterator[None]:
    """Turns whatever a damaged file causes into one clear error."""
    problem = ""
    try:
        yield
    except FileNotFoundError:
        problem = "there is no such file; `understudy fit` writes one"
    except OSError as error:
        problem = f"it cannot be read ({error.strerror})"
    except (zipfile.BadZipFile, zlib.error, EOFError):
        problem = "it is not a model file, or it is cut short; ask for it again"
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError, SchemaError, *more):
        # Among the RuntimeErrors: too deeply nested JSON, and members that are encrypted or packed in unknown ways.
        problem = "its contents are damaged or from another version; ask for it again"
    if problem:
        raise ModelFileError(f"model {str(path)!r}: {problem}")


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        if set(sizes) != set(MEMBERS) or len(archive.infolist()) != len(MEMBERS):
            raise zipfile.BadZipFile
        if max(sizes.values(), default=math.inf) > LARGEST_MEMBER:
            raise zipfile.BadZipFile
        return {name: archive.read(name) for name in MEMBERS}
