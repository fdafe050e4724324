"""The commands of `fastquorum shell`: what each prints, for people as Kafka's shell does, for programs as JSON lines.

Source: the handlers in Kafka's `org.apache.kafka.shell.command`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from fastquorum.cli.shell.nodes import Directory, Leaf, Node
from fastquorum.cli.shell.paths import FoundPath, Path, find, is_glob, path_text
from fastquorum.cli.terminal.output import print_json
from fastquorum.meant import nearest

_GAP: Final = 2
_COLUMN_WIDTH_MIN: Final = 4

Look = Callable[[], Directory]
"""The root of the tree as it is now: each command looks once, so that a moving image stays whole for one."""


class Terminal(Protocol):
    """The part of a session that needs a prompt."""

    @property
    def width(self) -> int:
        """In characters; 0 where nothing needs columns."""

    @property
    def lines(self) -> Sequence[str]:
        """What was typed so far, this line included."""


class ShellSession:
    """A session: the present directory in a tree, and the form of the output."""

    def __init__(self, look: Look, complain: Callable[[str], None], *, as_json: bool = False) -> None:
        self.look = look
        self.as_json = as_json
        self.working: Path = ()
        self.terminal: Terminal | None = None
        """None if there is no prompt, as for a single command; some commands need it."""
        self.has_failed = False
        """Did the last command fail?"""
        self.is_left = False
        self._complain = complain

    def run(self, words: Sequence[str]) -> bool:
        """Run one command; return whether all of it succeeded. Failures go to the error output."""
        self.has_failed = False
        name, targets = words[0], [word for word in words[1:] if word]
        command = COMMANDS.get(name)
        if command is None:
            near = nearest(name, COMMANDS)
            self.complain(f"{name}: no such command; {f'did you mean {near}? ' if near else ''}help lists them")
        elif command.needs_prompt and self.terminal is None:
            self.complain(f"{name}: only at the prompt of the shell")
        elif not command.targets_min <= len(targets) <= command.targets_max:
            self.complain(f"usage: {command.usage}")
        elif self.as_json and not command.has_json:
            self.complain(f"{name}: has no JSON output")
        else:
            command.run(self, targets)
        return not self.has_failed

    def complain(self, text: str) -> None:
        self.has_failed = True
        self._complain(text)

    def found(self, command: str, targets: Sequence[str]) -> Iterator[tuple[str, FoundPath]]:
        """Every node that the targets stand for, with what to call it: as it was asked for, a glob's by its path.

        Complains of targets that stand for none.
        """
        root = self.look()
        for target in targets:
            is_missing = True
            for each in find(root, self.working, target):
                is_missing = False
                yield path_text(each.path) if is_glob(target) else target, each
            if is_missing and target.startswith("-"):
                self.complain(f"{command}: there is no option {target}; usage: {COMMANDS[command].usage}")
            elif is_missing:
                self.complain(f"{command}: {target}: no such file or directory")


class ShellCommand(NamedTuple):
    """A command; how many targets it takes."""

    usage: str
    summary: str
    run: Callable[[ShellSession, Sequence[str]], None]
    targets_min: int = 0
    targets_max: int = 1 << 30
    needs_prompt: bool = False
    has_json: bool = False
    completes: str = "paths"
    """What Tab offers behind it: paths, commands, nothing."""


def _ls(shell: ShellSession, targets: Sequence[str]) -> None:
    files: list[str] = []
    directories: list[tuple[str, list[str]]] = []
    for _, found in shell.found("ls", targets or ["."]):
        names = found.node.names() if isinstance(found.node, Directory) else None
        if shell.as_json:
            print_json({"path": path_text(found.path), "children": names})
        elif names is None:
            files.append(found.name)
        else:
            directories.append((found.name, names))
    width = 0 if shell.terminal is None else shell.terminal.width
    for line in _listed(files, directories, width):
        print(line)


def _listed(files: list[str], directories: list[tuple[str, list[str]]], width: int) -> Iterator[str]:
    """The files, then each directory below its name, if it is not the only target. An empty one is passed over."""
    yield from in_columns(files, width)
    if not files and len(directories) == 1:
        yield from in_columns(directories[0][1], width)
        return
    is_first = not files
    for name, names in directories:
        if names:
            yield from ([f"{name}:"] if is_first else ["", f"{name}:"])
            yield from in_columns(names, width)
        is_first = False


def in_columns(names: Sequence[str], width: int) -> Iterator[str]:
    """Lines of as many columns as go into `width` characters; one column if that is 0 or too narrow.
    Source: Kafka `LsCommandHandler`."""
    lengths = [len(name) + _GAP for name in names]
    for columns in range(min(width // _COLUMN_WIDTH_MIN, len(names)), 1, -1):
        height = -(-len(names) // columns)
        widths = [max(lengths[at : at + height]) for at in range(0, len(names), height)]
        if len(widths) == columns and sum(widths) <= width:
            for row in range(height):
                cells = zip(names[row::height], widths, strict=False)
                yield "".join(name.ljust(cell) for name, cell in cells).rstrip()
            return
    yield from names


def _cat(shell: ShellSession, targets: Sequence[str]) -> None:
    for called, found in shell.found("cat", targets):
        if isinstance(found.node, Directory):
            shell.complain(f"cat: {called}: is a directory")
        elif shell.as_json:
            print_json({"path": path_text(found.path), "value": found.node.value()})
        else:
            print(found.node.text())


def _tree(shell: ShellSession, targets: Sequence[str]) -> None:
    for _, found in shell.found("tree", targets or ["."]):
        if shell.as_json:
            print_json({"path": path_text(found.path), "value": _values(found.node)})
        else:
            for line in _drawn(found.node, ""):
                print(line)


def _drawn(node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield indent + node.text()
        return
    for name, child in node.children():
        yield f"{indent}{name}:"
        yield from _drawn(child, f"{indent}  ")


def _values(node: Node) -> object:
    if isinstance(node, Leaf):
        return node.value()
    return {name: _values(child) for name, child in node.children()}


def _find(shell: ShellSession, targets: Sequence[str]) -> None:
    """Paths begin as they were asked for; of a glob they are real ones, where Kafka's shell repeats the glob."""
    for called, found in shell.found("find", targets or ["."]):
        for path, node in _below(path_text(found.path) if shell.as_json else called, found.node):
            if shell.as_json:
                print_json({"path": path, "isDirectory": isinstance(node, Directory)})
            else:
                print(path)


def _below(path: str, node: Node) -> Iterator[tuple[str, Node]]:
    yield path, node
    if isinstance(node, Directory):
        for name, child in node.children():
            yield from _below(f"{path}{name}" if path == "/" else f"{path}/{name}", child)


def _cd(shell: ShellSession, targets: Sequence[str]) -> None:
    (target,) = targets or ["/"]
    found = [each for _, each in shell.found("cd", [target])]
    if len(found) > 1:
        shell.complain(f"cd: {target}: matches {len(found)} directories")
    elif found and isinstance(found[0].node, Directory):
        shell.working = found[0].path
    elif found:
        shell.complain(f"cd: {target}: not a directory")


def _pwd(shell: ShellSession, _: Sequence[str]) -> None:
    print(path_text(shell.working))


def _history(shell: ShellSession, targets: Sequence[str]) -> None:
    assert shell.terminal is not None
    lines = list(enumerate(shell.terminal.lines, 1))
    if targets and not targets[0].isdecimal():
        shell.complain(f"history: {targets[0]}: not a number of lines")
        return
    for number, line in lines[max(0, len(lines) - int(targets[0])) :] if targets else lines:
        print(f"{number:5}  {line}")


def _help(shell: ShellSession, _: Sequence[str]) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        if shell.terminal is not None or not command.needs_prompt:
            print(f"{command.usage:{width}}  {command.summary}")
    print("\nA PATH may be a glob: * and ? and {a,b} stand for names within a directory.")


def _man(shell: ShellSession, targets: Sequence[str]) -> None:
    command = COMMANDS.get(targets[0])
    if command is None:
        shell.complain(f"man: {targets[0]}: no such command; help lists them")
    else:
        print(f"{targets[0]}: {command.summary}\n\nusage: {command.usage}")


def _exit(shell: ShellSession, _: Sequence[str]) -> None:
    shell.is_left = True


COMMANDS: Final = {
    command.usage.partition(" ")[0]: command
    for command in (
        ShellCommand("cat PATH ...", "show files", _cat, targets_min=1, has_json=True),
        ShellCommand("cd [PATH]", "go to a directory, or to the root", _cd, targets_max=1, needs_prompt=True),
        ShellCommand("exit", "leave the shell", _exit, targets_max=0, needs_prompt=True, completes="nothing"),
        ShellCommand("find [PATH ...]", "list everything below", _find, has_json=True),
        ShellCommand("help", "list the commands", _help, targets_max=0, completes="nothing"),
        ShellCommand(
            "history [N]", "list the last lines typed", _history, 0, 1, needs_prompt=True, completes="nothing"
        ),
        ShellCommand("ls [PATH ...]", "list directories", _ls, has_json=True),
        ShellCommand("man COMMAND", "explain a command", _man, targets_min=1, targets_max=1, completes="commands"),
        ShellCommand("pwd", "print the current directory", _pwd, targets_max=0, needs_prompt=True, completes="nothing"),
        ShellCommand("tree [PATH ...]", "show all files below, indented", _tree, has_json=True),
    )
}
