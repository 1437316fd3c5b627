"""A real browser opens the page: it asks for nothing, runs nothing, complains of nothing."""

import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from compared_helpers import grid

from understudy.report import public_report, steward_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=2000",
    "--dump-dom",
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH to open the page with")


@pytest.fixture
def served():
    """A server for one page, which keeps what it is asked for: a page from a file could not ask its own host."""
    asked: list[str] = []
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(pages.get(self.path, b""))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", pages, asked
    server.shutdown()
    server.server_close()
    thread.join()


def opened(address: str, profile: Path) -> tuple[str, list[str]]:
    """The page as the browser holds it, and what its console said."""
    command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", address]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return ran.stdout, [line for line in ran.stderr.splitlines() if "CONSOLE" in line]


def test_pages_ask_for_nothing(served, tmp_path, evaluation, histograms, dependence, guarantee) -> None:
    address, pages, asked = served
    pages["/page"] = steward_report(evaluation, histograms, dependence, title="Report", guarantee=guarantee).encode()
    dom, console = opened(f"{address}/page", tmp_path)
    assert console == []
    assert [path for path in asked if path != "/favicon.ico"] == ["/page"]
    assert "<script" not in dom
    assert "&lt;script&gt;alert(1)" in dom
    assert dom.count("<svg") == 7


def test_the_file_opens_too(tmp_path, histograms, guarantee) -> None:
    from dataclasses import replace

    own = [replace(shown, real=None, missing_real=0.0) for shown in histograms]
    page = tmp_path / "report.html"
    page.write_text(public_report(own, title="Report", guarantee=guarantee), encoding="utf-8")
    dom, console = opened(page.as_uri(), tmp_path / "profile")
    assert console == []
    assert dom.count("<svg") == 2


def test_the_browser_would_tell(served, tmp_path) -> None:
    address, pages, asked = served
    pages["/page"] = b"<!doctype html><script>console.error('x')</script><img src=/leak>"
    _, console = opened(f"{address}/page", tmp_path)
    assert len(console) == 1
    assert "/leak" in asked


def test_a_comparison_asks_for_nothing_either(served, tmp_path) -> None:
    from understudy.report import comparison_report

    address, pages, asked = served
    pages["/page"] = comparison_report(grid()).encode()
    dom, console = opened(f"{address}/page", tmp_path)
    assert console == []
    assert [path for path in asked if path != "/favicon.ico"] == ["/page"]
    assert "<script" not in dom
    assert "&lt;script&gt;alert(1)" in dom
    assert dom.count("<svg") == 2 * 2 + 2 + 3  # two legends of two methods, the gap and one figure, three costs
