"""Tables are read as their publishers mean them, and split the same way every time."""

import numpy as np
import pandas as pd
import pytest

from bench import datasets
from bench.datasets import SETTING, load, split


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(SETTING, str(tmp_path))

    def write(family, file, text):
        (tmp_path / family).mkdir(exist_ok=True)
        (tmp_path / family / file).write_text(text)

    return write


def test_adult_has_its_official_split_and_thirteen_columns(folder):
    names = (
        "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
        "capital-gain,capital-loss,hours-per-week,native-country,income"
    )
    row = "39,,77516,Bachelors,13,Never-married,Sales,Wife,White,Male,0,0,40,Cuba,<=50K"
    folder("adult", "train.csv", f"{names}\n{row}\n{row}\n")
    folder("adult", "test.csv", f"{names}\n{row}\n")
    data = load("adult")
    assert (data.train.shape, data.test.shape, data.label) == ((2, 13), (1, 13), "income")
    assert data.train["workclass"].isna().all()


def test_the_word_na_is_a_category(folder):
    folder("census_kdd", "census_test_part.csv.gz", "")
    path = datasets.locate("census_kdd", "census_test_part.csv.gz")
    pd.DataFrame({"hisp_origin": ["NA", "", "Cuban"], "instance_weight": 1.5}).to_csv(path, index=False)
    data = load("census_kdd")
    both = pd.concat([data.train, data.test])
    assert list(both.columns) == ["hisp_origin"]
    assert (both["hisp_origin"] == "NA").sum() == 1
    assert both["hisp_origin"].isna().sum() == 1


def test_acs_codes_stay_text_and_persons_without_income_are_below_the_median(folder):
    header = "MSP,AGEP,NOC,NPF,DENSITY,PINCP,PINCP_DECILE,POVPIP,PWGTP,WGTP"
    rows = ["N,7,N,2,10.5,N,N,501,3,0", "1,40,0,2,10.5,36001.0,9,501,3,4", "6,50,0,2,10.5,36000.0,9,501,3,4"] * 4
    folder("acs_excerpts", "tx2018.csv", "\n".join([header, *rows]) + "\n")
    data = load("acs_tx2018")
    both = pd.concat([data.train, data.test])
    assert "PINCP" not in both
    assert "PINCP_DECILE" not in both
    assert both.groupby(both["MSP"].fillna("none"))[data.label].agg(set).to_dict() == {"1": {1}, "6": {0}, "none": {0}}
    assert data.schema_path.name == "acs_tx.yaml"


def test_titanic_test_rows_get_their_labels(folder):
    columns = "Pclass,Name,Sex,Age,SibSp,Parch,Ticket,Fare,Cabin,Embarked"
    folder("titanic", "train.csv", f"PassengerId,Survived,{columns}\n1,0,3,A,male,22,1,0,x,7.25,,S\n")
    folder("titanic", "test.csv", f"PassengerId,{columns}\n3,3,B,male,,1,0,x,7,,S\n2,3,C,male,9,1,0,x,7,,S\n")
    folder("titanic", "test_labels.csv", "PassengerId,Survived\n2,1\n3,0\n")
    data = load("titanic")
    assert list(data.test.columns) == list(data.train.columns)
    assert data.test.set_index("PassengerId")["Survived"].to_dict() == {3: 0, 2: 1}


def test_semicolons_and_images(folder, tmp_path):
    folder("cardio", "cardio_train.csv", "id;age;cardio\n" + "".join(f"{i};{i + 9000};0\n" for i in range(8)))
    assert load("cardio").train.shape == (6, 3)
    (tmp_path / "mnist").mkdir()
    for part, count in (("train", 3), ("test", 2)):
        images = np.arange(count * 28 * 28, dtype=np.uint32).reshape(count, 28, 28).astype(np.uint8)
        np.savez(tmp_path / "mnist" / f"{part}.npz", images=images, labels=np.arange(count, dtype=np.uint8))
    data = load("mnist")
    assert data.train.shape == (3, 785)
    assert data.schema_path is None
    assert data.train["p783"][0] == 783 % 256


def test_split_is_fixed_and_whole():
    frame = pd.DataFrame({"row": range(1000)})
    train, test = split(frame)
    assert (len(train), len(test)) == (750, 250)
    assert set(train["row"]) | set(test["row"]) == set(range(1000))
    assert split(frame)[0].equals(train)
    assert not train["row"].is_monotonic_increasing


def test_split_by_group_keeps_groups_apart():
    groups = pd.Series(np.repeat([f"g{i}" for i in range(20)], 5))
    train, test = split(pd.DataFrame({"group": groups}), groups=groups)
    assert not set(train["group"]) & set(test["group"])
    assert (train["group"].nunique(), test["group"].nunique()) == (15, 5)


def test_a_missing_file_names_dataset_setting_and_file(folder):
    with pytest.raises(FileNotFoundError, match=rf"'bank'.*{SETTING}.*bank/bank\.csv"):
        load("bank")


def test_without_the_setting_the_cache_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"'cardio' has no address.*Kaggle.*{SETTING}"):
        load("cardio")
    (tmp_path / "cardio").mkdir()
    (tmp_path / "cardio" / "cardio_train.csv").write_text("id;age;cardio\n1;9000;0\n2;9001;1\n")
    assert len(load("cardio").train) == 2


def test_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"must be one of adult, .*got 'adlut'"):
        load("adlut")
