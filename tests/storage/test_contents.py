"""A log of one kind in a directory that was formatted for the other."""

import shutil
from pathlib import Path

import pytest

from fastquorum.errors import DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.storage.format import FormatOptions
from fastquorum.storage.identity import LogKind
from fastquorum.storage.io.handover import hand_to_kafka
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.names import BOOTSTRAP_CHECKPOINT, OWN_PROPERTIES
from fastquorum.types import Uuid

from .test_verified_or_refused import NO_OP, VOTERS, contents, is_refused, made, started


def options(kind: LogKind, *, has_bootstrap: bool = True) -> FormatOptions:
    """Return options for a directory that is not a controller's."""
    return FormatOptions("c", 1, Uuid(b"\1" * 16), VOTERS, kind, has_bootstrap=has_bootstrap)


def mislabelled(root: Path, kernels: Kernels, values: list[bytes], kind: LogKind, label: LogKind) -> Path:
    """A directory of one kind with the properties of another one of its cluster."""
    made(root, kernels, values, options=options(kind))
    other = made(root.with_name("other"), kernels, [], label)
    shutil.copy(other / OWN_PROPERTIES, root)
    return root


def test_records_of_users_are_no_metadata_log(tmp_path: Path, kernels: Kernels) -> None:
    root = mislabelled(tmp_path / "n1", kernels, [b"theirs"], LogKind.USER, LogKind.METADATA)
    before = contents(root)
    assert is_refused(root, kernels)
    with pytest.raises(DirectoryError, match="the first record of its log is none of metadata; files of two direct"):
        hand_to_kafka(str(root), kernels)
    (finding,) = open_offline(str(root), kernels).verify_directory().findings
    assert finding.text.startswith("it was formatted for a metadata log, and the first record of its log is none")
    assert contents(root) == before


@pytest.mark.parametrize("values", [[NO_OP], []], ids=["begun", "empty"])
def test_a_metadata_log_is_no_log_of_users(tmp_path: Path, kernels: Kernels, values: list[bytes]) -> None:
    root = mislabelled(tmp_path / "n1", kernels, values, LogKind.METADATA, LogKind.USER)
    assert is_refused(root, kernels)
    (finding,) = open_offline(str(root), kernels).verify_directory().findings
    assert finding.text.startswith(f"{OWN_PROPERTIES} says that it is a user log, and {BOOTSTRAP_CHECKPOINT} holds the")


@pytest.mark.parametrize(
    "value", [b"\1\xff\1\0", b"\1\2\x7f\0", NO_OP], ids=["of an unknown type", "of a newer version", "a known one"]
)
def test_a_newer_record_of_metadata_is_one(tmp_path: Path, kernels: Kernels, value: bytes) -> None:
    """A node that is no controller reads no records."""
    assert started(made(tmp_path / "n1", kernels, [value], LogKind.METADATA), kernels) is not None


@pytest.mark.parametrize("value", [NO_OP, b""], ids=["metadata", "empty"])
def test_users_may_append_what_looks_like_metadata(tmp_path: Path, kernels: Kernels, value: bytes) -> None:
    assert started(made(tmp_path / "n1", kernels, [value]), kernels) is not None


def test_a_metadata_log_without_first_records_begins_with_what_is_appended_first(
    tmp_path: Path, kernels: Kernels
) -> None:
    """Whoever embeds it may append anything."""
    root = made(tmp_path / "n1", kernels, [b"anything"], options=options(LogKind.METADATA, has_bootstrap=False))
    assert started(root, kernels) is not None
