"""What a hypervisor took from the machine that was measured is told with the result."""

import pytest

from fastquorum.load import stolen
from fastquorum.load.reports.compare import differences
from fastquorum.load.reports.page import page_of
from fastquorum.load.stolen import Stolen, in_words
from fastquorum.pages import document
from tests.load.results import result


def test_it_is_told_of_this_machine() -> None:
    share = Stolen().share()
    assert share is not None
    assert 0.0 <= share <= 1.0


def test_it_is_a_share_of_what_was_wanted_not_of_what_was_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = [[100, 0, 50, 1000, 10, 0, 0, 5], [160, 0, 70, 9000, 500, 0, 0, 25]]
    monkeypatch.setattr(stolen, "_ticks", lambda: ticks.pop(0))
    assert Stolen().share() == pytest.approx(20 / (60 + 20 + 20))


def test_it_is_not_known_where_the_kernel_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stolen, "_ticks", lambda: None)
    assert Stolen().share() is None
    assert in_words(None) == ""


def test_it_is_worth_a_word_where_it_shows() -> None:
    assert in_words(0.01) == ""
    assert "17% of the CPU time" in in_words(0.17)
    quiet, noisy = result(1000), {**result(1000), "stolen_cpu_share": 0.17}
    assert "17% of the CPU time" in document(page_of(noisy))
    assert "CPU time" not in document(page_of(quiet))
    assert differences(quiet, quiet) == []
    assert differences(quiet, noisy) == [
        "in B the hypervisor gave 17% of the CPU time wanted to other machines at 1,000/s"
    ]
    del quiet["stolen_cpu_share"]  # as kept by an older version
    assert differences(quiet, quiet) == []
