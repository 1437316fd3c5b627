"""Writes the schemas that are too long and too regular to write by hand: `python -m bench.schemas.generate`.

Needs no table, except for the ACS excerpts, whose dictionary (places, codes) and list of industries it reads from the
folder that UNDERSTUDY_DATA names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from bench.datasets import ACS_TABLES, SCHEMAS, locate

COVTYPE = """\
# UCI Covertype, the balanced first 15,120 rows. Columns and units: UCI's covtype.info (metres, degrees, hillshade as an
# index of 0 to 255). The four wilderness areas of the Roosevelt forest lie between 1,800 and 4,000 metres. No document
# bounds the distances: their ends were chosen knowing that all 581,012 published rows lie inside.
format: 1
rows: 11000
label: Cover_Type
columns:
  Elevation: {kind: integer, low: 1800, high: 4000}
  Aspect: {kind: integer, low: 0, high: 360}
  Slope: {kind: integer, low: 0, high: 90}
  Horizontal_Distance_To_Hydrology: {kind: integer, low: 0, high: 1500, zero_inflated: true, source: {high: data}}
  Vertical_Distance_To_Hydrology:
    {kind: integer, low: -200, high: 700, zero_inflated: true, source: {low: data, high: data}}
  Horizontal_Distance_To_Roadways: {kind: integer, low: 0, high: 7500, source: {high: data}}
  Hillshade_9am: {kind: integer, low: 0, high: 255}
  Hillshade_Noon: {kind: integer, low: 0, high: 255}
  Hillshade_3pm: {kind: integer, low: 0, high: 255}
  Horizontal_Distance_To_Fire_Points: {kind: integer, low: 0, high: 7500, source: {high: data}}
"""

CREDITCARD = """\
# ULB credit card fraud. Time is seconds since the first of two days. V1..V28 are principal components without a
# documented range: the bounds of 30 were chosen knowing the rows, and clip a few frauds. No document bounds Amount
# either (euros).
format: 1
rows: 4000
label: Class
columns:
  Time: {kind: integer, low: 0, high: 172800}
"""

EPILEPTIC = """\
# UCI Epileptic seizure recognition: 178 samples of a one-second EEG of the University of Bonn, digitised with 12 bits.
format: 1
rows: 9000
label: y
columns:
"""

ISOLET = """\
# UCI ISOLET: 617 acoustic features, scaled by the publisher to -1..1, and the letter spoken.
format: 1
rows: 1500
label: label
columns:
"""

ACS = """\
# NIST's excerpts of the American Community Survey, {place}.
# Values and ranges: NIST's data_dictionary.json, where N (not applicable) is the missing cell.
# The list of industries (INDP) is public in the Census Bureau's PUMS dictionary; here it was collected from the six
# tables, which lack 2 of its 271 codes.
format: 1
rows: {rows}
label: income_over_36k
columns:
"""

ACS_PLACES = {
    "ma": ("Massachusetts", "25-", 6000),
    "tx": ("Texas", "48-", 7000),
    "national": ("20 areas of the nation", "", 20000),
}


def covtype() -> str:
    binaries = [f"Wilderness_Area{i}" for i in range(1, 5)] + [f"Soil_Type{i}" for i in range(1, 41)]
    flags = "".join(f"  {name}: {{kind: boolean}}\n" for name in binaries)
    return COVTYPE + flags + "  Cover_Type: {kind: categorical, values: [1, 2, 3, 4, 5, 6, 7]}\n"


def creditcard() -> str:
    component = "{kind: real, low: -30, high: 30, source: {low: data, high: data}}"
    amount = "{kind: real, low: 0, high: 30000, resolution: 0.01, log: true, source: {high: data}}"
    components = "".join(f"  V{i}: {component}\n" for i in range(1, 29))
    return CREDITCARD + components + f"  Amount: {amount}\n  Class: {{kind: boolean}}\n"


def epileptic() -> str:
    samples = "".join(f"  X{i}: {{kind: integer, low: -2048, high: 2047}}\n" for i in range(1, 179))
    return EPILEPTIC + samples + "  y: {kind: categorical, values: [1, 2, 3, 4, 5]}\n"


def isolet() -> str:
    features = "".join(f"  f{i}: {{kind: real, low: -1, high: 1}}\n" for i in range(1, 618))
    return ISOLET + features + f"  label:\n    kind: categorical\n    values: [{_wrapped(range(1, 27))}]\n"


def acs(part: str, dictionary: dict[str, dict], industries: list[str]) -> str:
    place, prefix, rows = ACS_PLACES[part]
    areas = [code for code in dictionary["PUMA"]["values"] if code.startswith(prefix)]
    if not prefix:  # the national tables are the areas of neither state
        areas = [code for code in areas if not code.startswith(("25-", "48-"))]
    lines = []

    def coded(name: str, kind: str = "categorical") -> None:
        codes = list(dictionary[name]["values"])
        absent = ", missing: true" if "N" in codes else ""
        values = ", ".join(_quoted(code) for code in codes if code != "N")
        lines.append(f"  {name}:\n    {{kind: {kind}, values: [{values}]{absent}}}\n")

    def counted(name: str, low: float, high: float, more: str = "", kind: str = "integer") -> None:
        lines.append(f"  {name}: {{kind: {kind}, low: {low}, high: {high}{more}}}\n")

    lines.append(f"  PUMA:\n    kind: categorical\n    values: [{_wrapped(map(_quoted, areas))}]\n")
    counted("AGEP", 0, 99)
    for name in ("SEX", "MSP", "HISP", "RAC1P"):
        coded(name)
    counted("NOC", 0, 19, ", missing: true")
    counted("NPF", 2, 20, ", missing: true")
    coded("HOUSING_TYPE")
    coded("OWN_RENT")
    counted("DENSITY", 16.3, 52864.7, ", resolution: 0.1, log: true", kind="real")
    codes = _wrapped(map(_quoted, industries))
    lines.append(
        f"  INDP:\n    kind: categorical\n    values: [{codes}]\n    missing: true\n    source: {{values: data}}\n"
    )
    coded("INDP_CAT")
    coded("EDU", "ordinal")
    counted("POVPIP", 0, 501, ", missing: true")
    for name in ("DVET", "DREM", "DPHY", "DEYE", "DEAR"):
        coded(name)
    counted("PWGTP", 1, 9999, ", log: true")
    counted("WGTP", 0, 9999, ", log: true, zero_inflated: true")
    lines.append("  income_over_36k: {kind: boolean}\n")
    return ACS.format(place=place, rows=rows) + "".join(lines)


def _quoted(code: str) -> str:
    # Codes keep their leading zeros, so those that look like octal numbers to YAML are quoted.
    return json.dumps(code) if code.startswith("0") and len(code) > 1 else code


def _wrapped(values: Iterable[object], width: int = 100) -> str:
    """Comma separated, broken into lines that continue a flow list."""
    lines, line = [], ""
    for value in values:
        item = f"{value}, "
        if len(line) + len(item) > width:
            lines.append(line.rstrip())
            line = ""
        line += item
    lines.append(line.rstrip(", "))
    return "\n             ".join(lines)


def main() -> None:
    texts = {"covtype": covtype(), "creditcard": creditcard(), "epileptic": epileptic(), "isolet": isolet()}
    first = locate("acs_excerpts", f"{ACS_TABLES[0]}.csv")
    dictionary = json.loads((first.parent / "data_dictionary.json").read_text())
    tables = [
        pd.read_csv(first.parent / f"{table}.csv", usecols=["INDP"], dtype=str, na_values=["N"]) for table in ACS_TABLES
    ]
    industries = sorted(pd.concat(tables)["INDP"].dropna().unique())
    for part in ACS_PLACES:
        texts[f"acs_{part}"] = acs(part, dictionary, industries)
    for name, text in texts.items():
        Path(SCHEMAS / f"{name}.yaml").write_text(text)


if __name__ == "__main__":
    main()
