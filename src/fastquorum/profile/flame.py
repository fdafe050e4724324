"""A flame graph as SVG: frames as wide as the time found in and below them; a click widens one.

Source: Brendan Gregg, "Visualizing Performance with Flame Graphs".
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from fastquorum.profile.stacks import Stacks

WIDTH: Final = 1200
ROW: Final = 17
_TOP: Final = 46
_BOTTOM: Final = 8
_SHARE_MIN: Final = 0.0004
"""Least part of the whole width: narrower frames would be less than half a pixel."""
_LETTER: Final = 7.0
_PYTHON: Final = re.compile(r"\.pyx?:\d+\)$")
COLOURS: Final = {"python": "#a8c7f0", "native": "#f3b28b", "kernel": "#b9d7a8", "group": "#d9dde2"}
_STYLE: Final = (
    "text{font:11.5px ui-monospace,Menlo,Consolas,monospace;fill:#212529;pointer-events:none}g{cursor:pointer}"
)
_SCRIPT: Final = """
(function(){var s=document.currentScript.closest('svg'),W=%d,L=%s,F=[].slice.call(s.querySelectorAll('g[data-x]'));
function show(x,w){F.forEach(function(g){var a=+g.dataset.x,b=+g.dataset.w,
r=g.querySelector('rect'),t=g.querySelector('text');
var l=Math.max((a-x)/w,0)*W,e=Math.min((a+b-x)/w,1)*W,v=e-l;g.style.display=v>0.3?'':'none';
r.setAttribute('x',l);r.setAttribute('width',Math.max(v-0.4,0.3));t.setAttribute('x',l+3);
var n=Math.floor((v-6)/L),d=g.dataset.n;t.textContent=n<3?'':d.length<=n?d:d.slice(0,n-1)+'\\u2026';});}
F.forEach(function(g){g.addEventListener('click',function(){show(+g.dataset.x,+g.dataset.w);});});show(0,1);})();
"""


class FlameFrame:
    """A node of the tree of stacks."""

    __slots__ = ("children", "name", "seconds")

    def __init__(self, name: str) -> None:
        self.name = name
        self.seconds = 0.0
        """In it and below."""
        self.children: dict[str, FlameFrame] = {}

    @property
    def depth(self) -> int:
        """Rows that it takes, itself included."""
        return 1 + max((child.depth for child in self.children.values()), default=0)


def tree_of(stacks: Stacks, name: str = "all") -> FlameFrame:
    root = FlameFrame(name)
    for stack, seconds in stacks.items():
        root.seconds += seconds
        at = root
        for frame in stack:
            at = at.children.setdefault(frame, FlameFrame(frame))
            at.seconds += seconds
    return root


def draw(stacks: Stacks, title: str) -> str:
    """A whole SVG document. Frames of Python, of native code and of the kernel have colours of their own."""
    root = tree_of(stacks)
    placed = list(_placed(root, 0.0, 0, root.seconds)) if root.seconds else []
    height = _TOP + _BOTTOM + ROW * (1 + max((depth for _, _, _, depth in placed), default=0))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="6" y="18" style="font-weight:600;font-size:13px">{escape(title)}</text>',
        *_legend(),
        *(_drawn(frame, at, share, height - _BOTTOM - ROW * (depth + 1)) for frame, at, share, depth in placed),
        f"<script><![CDATA[{_SCRIPT % (WIDTH, _LETTER)}]]></script>",
        "</svg>",
    ]
    return "\n".join(parts)


def _placed(frame: FlameFrame, at: float, depth: int, total: float) -> Iterator[tuple[FlameFrame, float, float, int]]:
    """Each frame with where it begins and how wide it is, as shares of the whole."""
    yield frame, at, frame.seconds / total, depth
    for child in sorted(frame.children.values(), key=lambda each: each.name):
        if child.seconds / total >= _SHARE_MIN:
            yield from _placed(child, at, depth + 1, total)
        at += child.seconds / total


def _legend() -> Iterator[str]:
    across = 6
    for kind in ("python", "native", "kernel"):
        yield f'<rect x="{across}" y="27" width="11" height="11" fill="{COLOURS[kind]}"/>'
        yield f'<text x="{across + 16}" y="37">{kind}</text>'
        across += 84
    hint = "width: time; a click widens a frame, the lowest shows all again"
    yield f'<text x="{across}" y="37" fill="#6c757d">{hint}</text>'


def _drawn(frame: FlameFrame, at: float, share: float, down: int) -> str:
    label = f"{frame.name}: {frame.seconds:.2f} s, {share:.1%}"
    letters = int((share * WIDTH - 6) / _LETTER)
    text = "" if letters < 3 else frame.name if len(frame.name) <= letters else frame.name[: letters - 1] + "…"
    return (
        f'<g data-x="{at:.6f}" data-w="{share:.6f}" data-n="{escape(frame.name)}"><title>{escape(label)}</title>'
        f'<rect x="{at * WIDTH:.1f}" y="{down}" width="{max(share * WIDTH - 0.4, 0.3):.1f}" height="{ROW - 1}" '
        f'rx="1.5" fill="{COLOURS[kind_of(frame.name)]}"/>'
        f'<text x="{at * WIDTH + 3:.1f}" y="{down + 12}">{escape(text)}</text></g>'
    )


def kind_of(frame: str) -> str:
    """Return python, native or kernel; group if it is not a frame."""
    if _PYTHON.search(frame) or "<frozen " in frame:
        return "python"
    if not frame.endswith(")") or frame.startswith("node ") or frame.endswith("(native)"):
        return "group"
    return "kernel" if frame.endswith(("([kernel.kallsyms])", "(kernel)")) else "native"
