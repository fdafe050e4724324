"""One language: the field's. What may not stand in docstrings and names; exceptions may only become fewer."""

from pathlib import Path
from typing import Final

from tests.quality import words

KEPT: Final = {
    "src/fastquorum/broker/agent.py": "'told' in told",
    "src/fastquorum/broker/pushed.py": "'told' in Told",
}
"""What programs use by the name that it has: `View.told` and its class."""
TWICE: Final = {"Log": ["log.py", "storage/log/log.py"]}
"""Public classes that share a name, and their modules."""

SOURCE: Final = '''\
class Terms:
    """Of one leader."""

    told = 0
    """Those offsets that were announced."""


def test_what_was_said_is_a_sentence(asked: int) -> None:
    """Return nothing."""
    import os as door

    match asked:
        case int() as heard:
            pass
'''


def test_names_and_docstrings_are_plain() -> None:
    found = [each for path in words.sources() for each in words.findings(path)]
    kept = {each.path: each.problem for each in found if KEPT.get(each.path) == each.problem}
    assert [str(each) for each in found if kept.get(each.path) != each.problem] == []
    assert kept == KEPT, "no longer there"


def test_a_public_class_has_its_name_for_itself() -> None:
    assert {name: where for name, where in words.public_classes().items() if len(where) > 1} == TWICE


def test_what_is_looked_for_is_found(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(SOURCE)
    found = sorted((each.line, each.problem) for each in words.findings(path, tmp_path))
    assert found == [
        (1, "'terms' in Terms"),
        (2, "a docstring begins with 'Of'"),
        (4, "'told' in told"),
        (5, "a docstring begins with 'Those'"),
        (8, "'asked' in asked"),
        (10, "'door' in door"),
        (13, "'heard' in heard"),
    ]
