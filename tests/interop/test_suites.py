"""Parsing the output of other projects' test runs, and the verdicts on it."""

import json
from pathlib import Path

from .suites import go_results, junit_results
from .suites_campaign import ON_KAFKA, ON_OURS, report


def _event(action: str, test: str | None = None) -> str:
    return json.dumps({"Action": action, "Package": "p", **({"Test": test} if test else {})})


def test_of_go_tests_those_without_subtests_count_and_one_that_did_not_end_has_failed() -> None:
    lines = [
        _event("run", "TestA"),
        "# not an event",
        _event("run", "TestA/one"),
        _event("pass", "TestA/one"),
        _event("run", "TestA/two"),
        _event("skip", "TestA/two"),
        _event("pass", "TestA"),
        _event("run", "TestB"),
        _event("fail"),
    ]
    assert go_results("\n".join(lines)) == {"TestA/one": "passed", "TestA/two": "skipped", "TestB": "failed"}


def test_a_junit_report_is_read_with_errors_as_failures(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(
        "<testsuites><testsuite><testcase classname='c' name='a'/><testcase classname='c' name='b'><error/></testcase>"
        "<testcase classname='c' name='s'><skipped/></testcase></testsuite></testsuites>"
    )
    assert junit_results(path) == {"c::a": "passed", "c::b": "failed", "c::s": "skipped"}


def test_only_what_passes_on_kafkas_controllers_and_not_on_ours_is_a_problem() -> None:
    found = report(
        {
            "suite": {
                ON_KAFKA: {"same": "passed", "both": "failed", "worse": "passed", "better": "failed"},
                ON_OURS: {"same": "passed", "both": "failed", "worse": "failed", "better": "passed"},
            }
        }
    )
    assert found["failed_on_both"] == ["suite: both"]
    assert set(found["different"]) == {"suite: worse", "suite: better"}
    [problem] = found["problems"]
    assert "worse" in problem
