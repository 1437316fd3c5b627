"""Raw files as their publishers have them become the bench's tables, or nothing at all."""

import gzip
import hashlib
import http.server
import io
import threading
import zipfile
from functools import partial

import pytest

from bench import downloads
from bench.downloads import REMOTES, Remote, download

ADULT_RAW = (
    b"|1x3 Cross validator\n25, Private, 226802, 11th, 7, X, ?, Own-child, Black, Male, 0, 0, 40, Cuba, <=50K.\n\n"
)
ADULT_CLEAN = "25,Private,226802,11th,7,X,,Own-child,Black,Male,0,0,40,Cuba,<=50K"


def sha256(lines):
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def remote(url, checksum, file="train.csv", clean=downloads.clean_adult):
    return {"adult": (Remote(file, url, clean, checksum),)}


@pytest.fixture
def adult_lines():
    return [next(downloads.clean_adult(b"")), ADULT_CLEAN]


def test_fetch_clean_check_and_keep(tmp_path, adult_lines):
    raw = tmp_path / "adult.test"
    raw.write_bytes(ADULT_RAW)
    (path,) = download("adult", tmp_path / "out", remote(raw.as_uri(), sha256(adult_lines)))
    assert path.read_text().splitlines() == adult_lines


def test_over_http_and_compressed_to_the_same_bytes(tmp_path, adult_lines):
    (tmp_path / "adult.test").write_bytes(ADULT_RAW)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/adult.test"
            parts = [
                download("adult", tmp_path / name, remote(url, sha256(adult_lines), file="train.csv.gz"))[
                    0
                ].read_bytes()
                for name in "ab"
            ]
            missing = f"http://127.0.0.1:{server.server_port}/nothing"
            with pytest.raises(FileNotFoundError, match=r"'adult': cannot fetch .*404.*UNDERSTUDY_DATA"):
                download("adult", tmp_path / "c", remote(missing, ""))
        finally:
            server.shutdown()
            thread.join()
    assert parts[0] == parts[1]
    assert gzip.decompress(parts[0]).decode().splitlines() == adult_lines


def test_a_changed_file_is_refused_and_not_kept(tmp_path, adult_lines):
    raw = tmp_path / "adult.test"
    raw.write_bytes(ADULT_RAW.replace(b"25", b"26"))
    with pytest.raises(ValueError, match="does not clean to the table"):
        download("adult", tmp_path / "out", remote(raw.as_uri(), sha256(adult_lines)))
    assert not (tmp_path / "out").exists()


def test_bank_comes_out_of_its_archive():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("bank-full.csv", '"age";"job";"y"\n58;"admin.";"no"\n')
    assert list(downloads.clean_bank(archive.getvalue())) == ["age,job,y", "58,admin.,no"]


def test_other_cleaners():
    assert list(downloads.clean_german_credit(b"A11 6 A34\n"))[1] == "A11,6,A34"
    assert list(downloads.clean_cervical(b"Age,Smokes\r\n18,?\r\n")) == ["Age,Smokes", "18,"]
    header, row = downloads.clean_intrusion(gzip.compress(b"0,tcp,0.50,normal.\n"))
    assert (header.count(","), row) == (41, "0,tcp,0.50,normal")
    census = gzip.compress(b"38, Private, ?, Not in universe, - 50000.\n21, NA, 50000+.\n")
    assert list(downloads.clean_census_kdd(census))[1:] == ["38,Private,,Not in universe,-50000", "21,NA,50000+"]


def test_covtype_keeps_the_balanced_head():
    lines = list(downloads.clean_covtype(gzip.compress(b"1,2,3\n" * 15_200)))
    assert lines[0].count(",") == 54
    assert len(lines) == 15_121


def test_every_remote_is_a_file_that_the_loader_asks_for():
    from bench.datasets import FILES

    for family, remotes in REMOTES.items():
        assert tuple(one.file for one in remotes) == FILES[family]
    assert not set(FILES) - set(REMOTES) - set(downloads.WHERE)
