"""`fastquorum guide`: lists chapters, shows one, and writes all of them as a page that needs nothing else."""

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest

from fastquorum.cli import guide as command
from fastquorum.cli.completion import SHELLS
from fastquorum.guide import CHAPTERS, names
from fastquorum.guide.site import site
from tests.cli.conftest import Ran, fastquorum

__all__ = ["fastquorum"]

OUTSIDE: Final = re.compile(r"""(?:src|url|@import|fetch)\s*[=(]\s*["']?https?:""")


def test_without_a_chapter_all_are_listed(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("guide")
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == ["CHAPTER", *names()]
    listed = json.loads(fastquorum("guide", "--format", "json").out)
    assert [each["chapter"] for each in listed] == names()
    assert all(each["title"] and each["summary"] for each in listed)


@pytest.mark.parametrize("name", names())
def test_a_chapter_is_markdown_where_no_terminal_shows_it(fastquorum: Callable[..., Ran], name: str) -> None:
    text = next(each.text for each in CHAPTERS if each.name == name)
    assert fastquorum("guide", name) == Ran(0, text, "")
    assert json.loads(fastquorum("guide", name, "--format", "json").out)["text"] == text


def test_a_mistyped_chapter_is_named_with_the_one_that_is_near(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("guide", "strt")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no chapter 'strt'" in ran.err
    assert "did you mean start?" in ran.err


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_completes_chapters(fastquorum: Callable[..., Ran], shell: str) -> None:
    script = fastquorum("completion", shell).out
    assert [name for name in names() if name not in script] == []


def test_a_page_is_of_all_chapters(fastquorum: Callable[..., Ran], tmp_path: Path) -> None:
    ran = fastquorum("guide", "start", "--html", tmp_path / "site")
    assert (ran.code, list(tmp_path.iterdir())) == (2, [])


@pytest.mark.parametrize("name", names())
def test_a_terminal_shows_a_chapter_within_its_width_and_says_where_links_lead(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    text = next(each.text for each in CHAPTERS if each.name == name)
    shown = command._laid_out(text)
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 60
    assert ".md)" not in shown
    assert text.splitlines()[0].removeprefix("# ") in shown


def test_a_pager_shows_it_in_a_terminal(tmp_path: Path) -> None:
    """Stdin and stdout are a terminal here, and the pager keeps what it is given."""
    kept = tmp_path / "kept"
    code = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    words = [sys.executable, "-c", code, sys.executable, "-m", "fastquorum", "guide", "start"]
    environment = {**os.environ, "PAGER": f"cat > {kept}", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Start here" in kept.read_text()
    assert "\x1b[" in kept.read_text()


def test_the_page_is_written_whole_into_a_new_directory(fastquorum: Callable[..., Ran], tmp_path: Path) -> None:
    place = tmp_path / "site"
    assert fastquorum("guide", "--html", place) == Ran(0, f"{place / 'index.html'}\n", "")
    assert [each.name for each in place.iterdir()] == ["index.html"]
    assert (place / "index.html").read_text() == site(CHAPTERS)
    again = fastquorum("guide", "--html", place)
    assert again.code == 1
    assert "move it away" in again.err


class Ids(HTMLParser):
    """Collects ids, and links within the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given.get("href")))


def test_the_page_fetches_nothing_and_runs_no_script_but_its_own() -> None:
    text = site(CHAPTERS)
    assert OUTSIDE.search(text) is None
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert html.unescape(policy) == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert "prefers-color-scheme:dark" in text


def test_every_link_within_the_page_leads_to_a_place_in_it() -> None:
    page = Ids(site(CHAPTERS))
    assert len(page.ids) == len(set(page.ids))
    inner = [link for link in page.links if not link.startswith("https://")]
    assert [link for link in inner if link.removeprefix("#") not in page.ids] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="the script is tried out by node")
def test_the_search_finds_sections_by_their_words(tmp_path: Path) -> None:
    """With as much of a document as the script needs."""
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("search.test.js")), str(Path(command.__file__).parents[1] / "guide")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "found\n"), done.stderr
