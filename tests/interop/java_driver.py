"""A Java program of ours over Kafka's classes, as a process: a JSON value a line in, one a line out."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .kafka import JAVA, Kafka


class JavaDriver:
    """The program, compiled against one release, running. A context manager."""

    def __init__(self, kafka: Kafka, scratch: Path, sources: Sequence[str]) -> None:
        """The first source is the one that is run."""
        compiled = scratch / kafka.version
        paths = [str(Path(__file__).with_name(name)) for name in sources]
        subprocess.run(["javac", "-cp", kafka.class_path(), "-d", str(compiled), *paths], check=True)
        self._source = sources[0]
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", dir=scratch)  # noqa: SIM115  # closed by __exit__
        self._java = subprocess.Popen(
            [*JAVA, "-cp", kafka.class_path(compiled), Path(sources[0]).stem],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._java.stdin is not None
        assert self._java.stdout is not None
        if error is not None:
            self._java.kill()
        self._java.stdin.close()
        self._java.wait()
        self._java.stdout.close()
        self._errors.close()

    def ask(self, question: object) -> list[Any]:
        assert self._java.stdin is not None
        assert self._java.stdout is not None
        self._java.stdin.write(json.dumps(question) + "\n")
        self._java.stdin.flush()
        line = self._java.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise AssertionError(f"{self._source} ended: {self._errors.read()}")
        answer: list[Any] = json.loads(line)
        return answer
