"""One file that anybody can read, whatever stands on it; and the report that comes out of it again."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import UsageError
from fastquorum.pages import Card, Facts, Lines, Page, Prose, Section, Table, document, report_of, write_page
from fastquorum.pages.__main__ import main
from fastquorum.pages.chart import Axis, Band, Bar, Bars, Chart, Key, Marker, Pen, Series, Strip, Strips
from tests.pages.reading import looked_at

EVIL = "</script><script src=//x>alert(1)</script>&lt;\"'<img onerror=x src=y>"
KEYS = [Key("good", Pen.GOOD), Key("bad", Pen.BAD)]


def page(text: str = "a topic", report: dict[str, Any] | None = None) -> Page:
    """A page with everything on it, and the text everywhere."""
    time = Axis(text, "time", (1e9, 1e9 + 60))
    parts = [
        Prose(text),
        Lines([text, text]),
        Table([text, "n"], [[text, "1"]]),
        Facts({text: text}),
        Chart("c", text, Axis(text), Axis(text), [Series(text, [(0, 1), (1, 2)], has_points=True)], [Marker(1, text)]),
        Bars("b", text, Axis(text), [Key(text, Pen.BAD), KEYS[0]], [Bar(text, [1, 2], text)]),
        Strips(
            "s", text, time, [Key(text, Pen.BAD)], [Strip(text, [Band(1e9, 1e9 + 9, 0, text)])], [Marker(1e9, text)]
        ),
    ]
    contents = {"name": text} if report is None else report
    return Page(text, text, [text], contents, [Card(text, text)], [text], [Section(text, parts)])


def test_a_page_is_whole_and_says_what_it_was_given() -> None:
    looked = looked_at(document(page()))
    assert looked.words.count("a topic") >= 15
    assert looked.tags.count("svg") == 3


@pytest.mark.parametrize("text", [EVIL, "<b>", "\x00\x1b[31m", "\u202egnp.exe", "\udcff\udc80", "a\nb", "]]>", "<!--"])
def test_foreign_text_stays_text(text: str) -> None:
    drawn = document(page(text))
    drawn.encode("utf-8")
    looked = looked_at(drawn)
    assert looked.tags.count("img") == 0
    assert report_of(drawn) == {"name": text}
    for hidden in ("\x00", "\x1b", "\u202e"):
        assert hidden not in drawn


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(), max_size=60))
def test_any_text_at_all_leaves_the_page_whole(text: str) -> None:
    drawn = document(page(text))
    looked_at(drawn)
    assert report_of(drawn) == {"name": text}


def test_a_long_report_is_packed_and_comes_out_equal(tmp_path: Path) -> None:
    report = {"events": [{"offset": each, "text": f"broker {each} was fenced {EVIL}"} for each in range(10_000)]}
    path = tmp_path / "page.html"
    write_page(str(path), page(report=report))
    drawn = path.read_text()
    looked_at(drawn)
    assert len(drawn) < 200_000
    assert report_of(drawn) == report
    done = subprocess.run([sys.executable, "-m", "fastquorum.pages", path], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == report


def test_what_is_no_page_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.html").write_text("<html></html>")
    assert main([str(tmp_path / "other.html")]) == 2
    assert "this is not the page of a report" in capsys.readouterr().err
    assert main([str(tmp_path / "none.html")]) == 2
    assert capsys.readouterr().err.endswith("none.html: No such file or directory\n")
    assert main([]) == 2


def test_a_reader_that_has_had_enough_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(str(path), page(report={"text": "x" * 200_000}))
    line = f"{sys.executable} -m fastquorum.pages {path} | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout), done.stderr) == (141, 10, "")


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        write_page(str(path), page())
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not the page of a report"),
        ("<html></html>", "not the page of a report"),
        ('<script type="application/gzip" id="report">AAAA</script></body>', "damaged"),
        ('<script type="application/gzip" id="report">?</script></body>', "damaged"),
        ('<script type="application/json" id="report">{</script></body>', "damaged"),
    ],
)
def test_what_is_no_page_has_no_report(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        report_of(text)


def test_a_large_table_is_cut_and_says_so() -> None:
    rows = [[f"t{each}", str(each)] for each in range(1234)]
    many = Page(
        "t",
        "t",
        [],
        {},
        sections=[Section("all", [Table(["topic", "n"], rows), Table(["topic", "n"], rows[:9], left_out=7)])],
    )
    looked = looked_at(document(many))
    assert looked.tags.count("tr") == 101 + 10
    assert "1,134 more rows are not shown here; the JSON has them." in looked.words
    assert "7 more rows are not shown here." in looked.words


def test_many_sections_are_listed_first() -> None:
    many = Page("t", "t", [], {}, sections=[Section(f"cluster {each}", [Prose("x")]) for each in range(12)])
    drawn = document(many)
    assert looked_at(drawn).tags.count("a") == 12
    assert drawn.count('<h2 id="s11">cluster 11</h2>') == 1


def test_it_is_read_in_the_dark_and_printed_in_the_light() -> None:
    drawn = document(page())
    assert "@media screen and (prefers-color-scheme:dark)" in drawn
    assert "@media print" in drawn
    assert "default-src &#x27;none&#x27;" in drawn
