"""Fetches public tables from their publishers and cleans them into the layout of `bench.datasets`.

Cleaning works on text, line by line, so that the outcome is the same file to the last byte wherever it is made: its
SHA-256 is checked before anything is kept. A publisher's change thus stops the bench rather than shift its figures.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Remote:
    """One file of a dataset: where its raw form is, how that is cleaned, and what must come out."""

    file: str
    url: str
    clean: Callable[[bytes], Iterable[str]]  # lines of the cleaned CSV, header first, without line ends
    sha256: str  # of the cleaned CSV before compression


def lines_of(raw: bytes) -> Iterator[str]:
    for line in raw.decode("utf-8").splitlines():
        if line.strip():
            yield line


def _cells(line: str) -> list[str]:
    return ["" if cell.strip() == "?" else cell.strip() for cell in line.split(",")]


def clean_adult(raw: bytes) -> Iterator[str]:
    yield (
        "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
        "capital-gain,capital-loss,hours-per-week,native-country,income"
    )
    for line in lines_of(raw):
        if not line.startswith("|"):  # the test file opens with a remark
            yield ",".join(_cells(line)).removesuffix(".")


def clean_bank(raw: bytes) -> Iterator[str]:
    member = zipfile.ZipFile(io.BytesIO(raw)).read("bank-full.csv")
    for line in lines_of(member):
        yield line.replace('"', "").replace(";", ",")


def clean_german_credit(raw: bytes) -> Iterator[str]:
    yield (
        "status,duration,credit_history,purpose,amount,savings,employment_since,installment_rate,personal_status_sex,"
        "other_debtors,residence_since,property,age,other_installment_plans,housing,existing_credits,job,"
        "people_liable,telephone,foreign_worker,credit_risk"
    )
    for line in lines_of(raw):
        yield ",".join(line.split())


def clean_cervical(raw: bytes) -> Iterator[str]:
    for line in lines_of(raw):
        yield ",".join(_cells(line))


KDD_CUP_COLUMNS = (
    "duration,protocol_type,service,flag,src_bytes,dst_bytes,land,wrong_fragment,urgent,hot,num_failed_logins,"
    "logged_in,num_compromised,root_shell,su_attempted,num_root,num_file_creations,num_shells,num_access_files,"
    "num_outbound_cmds,is_host_login,is_guest_login,count,srv_count,serror_rate,srv_serror_rate,rerror_rate,"
    "srv_rerror_rate,same_srv_rate,diff_srv_rate,srv_diff_host_rate,dst_host_count,dst_host_srv_count,"
    "dst_host_same_srv_rate,dst_host_diff_srv_rate,dst_host_same_src_port_rate,dst_host_srv_diff_host_rate,"
    "dst_host_serror_rate,dst_host_srv_serror_rate,dst_host_rerror_rate,dst_host_srv_rerror_rate,label"
)


def clean_intrusion(raw: bytes) -> Iterator[str]:
    yield KDD_CUP_COLUMNS
    for line in lines_of(gzip.decompress(raw)):
        yield line.removesuffix(".")


def clean_covtype(raw: bytes) -> Iterator[str]:
    yield ",".join(
        [
            "Elevation,Aspect,Slope",
            "Horizontal_Distance_To_Hydrology,Vertical_Distance_To_Hydrology",
            "Horizontal_Distance_To_Roadways,Hillshade_9am,Hillshade_Noon,Hillshade_3pm",
            "Horizontal_Distance_To_Fire_Points",
            *(f"Wilderness_Area{i}" for i in range(1, 5)),
            *(f"Soil_Type{i}" for i in range(1, 41)),
            "Cover_Type",
        ]
    )
    # The publisher's own training and validation parts come first: 15,120 rows, 2,160 of each class.
    for number, line in enumerate(lines_of(gzip.decompress(raw))):
        if number == 15_120:
            return
        yield line


def clean_census_kdd(raw: bytes) -> Iterator[str]:
    yield (
        "age,class_worker,det_ind_code,det_occ_code,education,wage_per_hour,hs_college,marital_stat,major_ind_code,"
        "major_occ_code,race,hisp_origin,sex,union_member,unemp_reason,full_or_part_emp,capital_gains,capital_losses,"
        "stock_dividends,tax_filer_stat,region_prev_res,state_prev_res,det_hh_fam_stat,det_hh_summ,instance_weight,"
        "mig_chg_msa,mig_chg_reg,mig_move_reg,mig_same,mig_prev_sunbelt,num_emp,fam_under_18,country_father,"
        "country_mother,country_self,citizenship,own_or_self,vet_question,vet_benefits,weeks_worked,year,income_50k"
    )
    for line in lines_of(gzip.decompress(raw)):
        *cells, label = _cells(line)
        yield ",".join([*cells, label.removesuffix(".").replace(" ", "")])


REMOTES: dict[str, tuple[Remote, ...]] = {
    "adult": (
        Remote(
            "train.csv",
            UCI + "adult/adult.data",
            clean_adult,
            "5138b5b5c98caed85f1d168fa268339cfe6e9d033c3957515ab3a00396877174",
        ),
        Remote(
            "test.csv",
            UCI + "adult/adult.test",
            clean_adult,
            "db06b64a90951207cb7afb8d792ba8d327c2d8a78679ce5145157a8ec753ae4f",
        ),
    ),
    "bank": (
        Remote(
            "bank.csv",
            UCI + "00222/bank.zip",
            clean_bank,
            "b44507c26634736d4a0619ec2d7c4b6ff56a2c63cbeb5176d3134e7b25e416f0",
        ),
    ),
    "german_credit": (
        Remote(
            "german_credit.csv",
            UCI + "statlog/german/german.data",
            clean_german_credit,
            "90e19b1878b2298bf656eceae33e422af59511f7486869e022a31c03ee69755c",
        ),
    ),
    "cervical": (
        Remote(
            "cervical.csv",
            UCI + "00383/risk_factors_cervical_cancer.csv",
            clean_cervical,
            "6635b8425c404a6ab9571731b6740e91e31248a46a3812b8ad3d9c46917df0da",
        ),
    ),
    "intrusion": (
        Remote(
            "train.csv.gz",
            UCI + "kddcup99-mld/kddcup.data_10_percent.gz",
            clean_intrusion,
            "b3e50001604997152f195ad02f0fbc8ae27a2ae59d58ce2554022879578aa43a",
        ),
        Remote(
            "test.csv.gz",
            UCI + "kddcup99-mld/corrected.gz",
            clean_intrusion,
            "e6f42fc7cf84d2f32c62b509b15488fb43f7a3b7bf80c4f3fa5391e0e6434b2c",
        ),
    ),
    "covtype": (
        Remote(
            "covtype.csv.gz",
            UCI + "covtype/covtype.data.gz",
            clean_covtype,
            "00a487be2ecc8687167d91d1c3975d3e2c62659a32719333592dba49e99a4abf",
        ),
    ),
    "census_kdd": (
        Remote(
            "census_test_part.csv.gz",
            UCI + "census-income-mld/census-income.test.gz",
            clean_census_kdd,
            "1842d47a8a19740cd54665128020cc738ec7809e3d90fc55841436edcf57de9c",
        ),
    ),
}

# For the tables whose publisher has no plain address, or asks for an account first.
WHERE: dict[str, str] = {
    "cardio": "the cardiovascular disease table on Kaggle (cardio_train.csv, `;` separated)",
    "titanic": "the Titanic competition on Kaggle, test labels from Vanderbilt Biostatistics' titanic3",
    "mnist": "the MNIST files, as arrays `images` and `labels` in train.npz and test.npz",
    "fashion_mnist": "Zalando Research's Fashion-MNIST, as arrays `images` and `labels` in train.npz and test.npz",
    "isolet": "UCI's ISOLET (isolet1+2+3+4 and isolet5) with columns f1..f617 and label",
    "epileptic": "the University of Bonn's EEG recordings, cut into 23 chunks of 178 samples each",
    "creditcard": "ULB's credit card fraud table on Kaggle",
    "acs_excerpts": "NIST's diverse community excerpts (SDNist)",
    "pums_small": "the SmartNoise project's PUMS.csv",
    "gaussians25": "the Post-GAN boosting paper's toy example",
}


def download(family: str, folder: Path, remotes: dict[str, tuple[Remote, ...]] = REMOTES) -> list[Path]:
    """Fetches, cleans, checks and stores the files of one dataset; returns their paths."""
    if family not in remotes:
        raise FileNotFoundError(
            f"dataset {family!r} has no address to fetch it from: get it from {WHERE.get(family, 'its publisher')}, "
            f"and set UNDERSTUDY_DATA to a folder that holds it as {family}/<file>"
        )
    return [_fetch(family, remote, folder) for remote in remotes[family]]


def _fetch(family: str, remote: Remote, folder: Path) -> Path:
    try:
        with urllib.request.urlopen(remote.url, timeout=TIMEOUT_SECONDS) as response:
            raw = response.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise FileNotFoundError(
            f"dataset {family!r}: cannot fetch {remote.url} ({error}); get it another way, "
            f"and set UNDERSTUDY_DATA to a folder that holds {family}/{remote.file}"
        ) from None
    content = "".join(f"{line}\n" for line in remote.clean(raw)).encode()
    found = hashlib.sha256(content).hexdigest()
    if found != remote.sha256:
        raise ValueError(
            f"dataset {family!r}: {remote.url} does not clean to the table that the bench was written for "
            f"(SHA-256 {found}, must be {remote.sha256})"
        )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / remote.file
    partial = path.with_name(path.name + ".partial")  # a broken download never looks like a finished one
    # mtime=0: the same bytes on every machine and day.
    partial.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    partial.replace(path)
    return path
