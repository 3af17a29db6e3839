"""The page that trains a network in a browser, with a stand-in for Pyodide: what it loads, runs, draws and says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.browser.webdriver import Browser, missing_browser
from tools.browser_page import write_page

pytestmark = pytest.mark.skipif(missing_browser() is not None, reason=missing_browser() or "")

STAND_IN = """
window.asked = [];
async function loadPyodide() {
  const names = {}; let print = null;
  return {
    loadPackage: async (name) => asked.push(name),
    unpackArchive: (content, kind) => asked.push(kind, content.byteLength),
    globals: { set: (name, value) => { names[name] = value; } },
    setStdout: (options) => { print = options.batched; },
    runPythonAsync: async (text) => {
      if (text === "fail") throw new Error("NameError: name 'fail' is not defined");
      [4, 2, 1].forEach((loss) => names.show(loss)); print("trained");
    },
  };
}
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    wheel = tmp_path / "pullback-0.1.0-py3-none-any.whl"
    wheel.write_bytes(bytes(1000))
    write_page(tmp_path / "page", wheel)
    return tmp_path / "page"


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()
        thread.join()


def wait_for(browser: Browser, begins: str) -> str:
    """The page's state, once it begins so."""
    for _ in range(100):
        said = str(browser.run("return document.getElementById('state').textContent"))
        if said.startswith(begins):
            return said
        time.sleep(0.05)
    raise AssertionError(f"the page says {said!r}")


def test_a_program_is_run_and_its_losses_are_drawn(folder: Path, address: str) -> None:
    (folder / "pyodide").mkdir()
    (folder / "pyodide" / "pyodide.js").write_text(STAND_IN)
    with Browser() as browser:
        browser.open(address)
        wait_for(browser, "Ready.")
        assert browser.run("return asked") == ["numpy", "wheel", 1000]
        browser.run("document.getElementById('run').click()")
        wait_for(browser, "Done in")
        assert browser.run("return losses") == [4, 2, 1]
        assert browser.run("return document.getElementById('output').textContent") == "trained\n"
        drawn = (
            "const c = document.getElementById('curve'); return c.getContext('2d').getImageData(0, 0, 960, 240).data"
        )
        assert browser.run(f"{drawn}.some((value) => value !== 0)")
        browser.run("document.getElementById('program').value = 'fail'; document.getElementById('run').click()")
        wait_for(browser, "The program failed.")
        assert "NameError" in str(browser.run("return document.getElementById('output').textContent"))


def test_a_missing_runtime_is_said(address: str) -> None:
    with Browser() as browser:
        browser.open(address)
        assert "put Pyodide's release into that folder" in wait_for(browser, "Python could not be loaded")


def test_the_programs_text_runs(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent.parent / "examples" / "browser" / "index.html").read_text()
    program = text.partition('spellcheck="false">')[2].partition("</textarea>")[0]
    losses: list[float] = []
    exec(compile(program.replace("&gt;", ">").replace("&lt;", "<"), "page", "exec"), {"show": losses.append})
    assert losses[-1] < losses[0] / 4
