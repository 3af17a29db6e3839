"""Drawing: a graph in graphviz's DOT language, with the methods of `graphviz.Digraph` that programs use.

The graphviz program draws it where it is installed; an SVG is drawn without it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["Drawing", "make_dot_from_trace", "resize_graph"]


class Drawing:
    """A graph ready to be drawn: statements in `body`, attributes beside them, the whole text in `source`.

    >>> drawing = Drawing(["\\ta -> b\\n"])
    >>> drawing.attr(rankdir="LR")
    >>> drawing.graph_attr["size"] = "12,12"
    >>> print(drawing.source.expandtabs(4))
    digraph {
        graph [size="12,12"]
        a -> b
        rankdir=LR
    }
    <BLANKLINE>
    """

    def __init__(self, body: list[str], draw_svg: Callable[[], str] | None = None, format: str = "pdf") -> None:
        self.body = body
        self.format = format
        self.engine = "dot"
        self.filename = "Digraph.gv"
        self.directory = ""
        self.graph_attr: dict[str, str] = {}
        self.node_attr: dict[str, str] = {}
        self.edge_attr: dict[str, str] = {}
        self._draw_svg = draw_svg

    @property
    def source(self) -> str:
        """The DOT text."""
        defaults = {"graph": self.graph_attr, "node": self.node_attr, "edge": self.edge_attr}
        lines = [f"\t{kind} [{_attributes(values)}]\n" for kind, values in defaults.items() if values]
        return "".join(["digraph {\n", *lines, *self.body, "}\n"])

    def __str__(self) -> str:
        return self.source

    def _repr_svg_(self) -> str:
        return self._svg()

    def attr(self, kw: str | None = None, _attributes_given: Mapping[str, str] | None = None, **attrs: str) -> None:
        """Add attributes for the graph, or for the `kw` ("graph", "node" or "edge") that follow."""
        text = _attributes({**(_attributes_given or {}), **attrs})
        if text:
            self.body.append(f"\t{text}\n" if kw is None else f"\t{kw} [{text}]\n")

    def node(self, name: str, label: str | None = None, **attrs: str) -> None:
        """Add a node."""
        self.body.append(_statement(_quoted(name), {"label": label, **attrs}))

    def edge(self, tail_name: str, head_name: str, label: str | None = None, **attrs: str) -> None:
        """Add an arrow between two nodes."""
        self.body.append(_statement(f"{_quoted(tail_name)} -> {_quoted(head_name)}", {"label": label, **attrs}))

    def save(self, filename: str | Path | None = None, directory: str | Path | None = None) -> str:
        """Write the DOT text to a file and return its path."""
        path = Path(directory or self.directory, filename or self.filename)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")
        return str(path)

    def render(
        self,
        filename: str | Path | None = None,
        directory: str | Path | None = None,
        view: bool = False,
        cleanup: bool = False,
        format: str | None = None,
        *_positional: object,
        outfile: str | Path | None = None,
        **_unused: object,
    ) -> str:
        """Write the DOT text and its picture, and return the picture's path.

        `outfile` names the picture itself; its ending is the format. Without the graphviz program an SVG is written,
        whatever format is asked for.
        """
        if outfile is not None:
            picture = Path(directory or "", outfile)
            format = format or picture.suffix.removeprefix(".")
            source = Path(self.save(filename or picture.with_suffix(".gv").name, picture.parent))
        else:
            format = format or self.format
            source = Path(self.save(filename, directory))
            picture = source.with_name(f"{source.name}.{format}")
        if not _draws(format):
            picture = picture.with_suffix(".svg")
        picture.write_bytes(self._picture(format))
        if cleanup:
            source.unlink()
        if view:
            _open(picture)
        return str(picture)

    def view(self, filename: str | Path | None = None, directory: str | Path | None = None, **options: Any) -> str:
        """Write the picture, open it with the program that the system has for it, and return its path."""
        return self.render(filename, directory, view=True, **options)

    def pipe(self, format: str | None = None, *_unused: object, encoding: str | None = None, **_options: object) -> Any:
        """Return the picture itself: its bytes, or its text if an encoding is given."""
        picture = self._picture(format or self.format)
        return picture if encoding is None else picture.decode(encoding)

    def _picture(self, format: str) -> bytes:
        """The picture in this format; an SVG where nothing can draw another."""
        if not _draws(format):
            return self._svg().encode()
        return _run_graphviz(self.source, format, self.engine)

    def _svg(self) -> str:
        """The picture as SVG, drawn here where the boxes are known, otherwise by graphviz."""
        if self._draw_svg is not None:
            return self._draw_svg()
        return _run_graphviz(self.source, "svg", self.engine).decode()


def _draws(format: str) -> bool:
    """Whether the graphviz program is to draw this format, and can."""
    return format != "svg" and shutil.which("dot") is not None


def _run_graphviz(source: str, format: str, engine: str) -> bytes:
    program = shutil.which(engine)
    if program is None:
        raise RuntimeError(f"drawing this needs graphviz's program {engine!r}, which is not installed")
    return subprocess.run([program, f"-T{format}"], input=source.encode(), capture_output=True, check=True).stdout


def _open(path: Path) -> None:
    """Open a file as a double click would; without a program for it, do nothing."""
    if sys.platform == "win32":
        import os

        os.startfile(path)
        return
    opener = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if opener is not None:
        subprocess.Popen([opener, str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _quoted(text: object) -> str:
    """A name or value as DOT writes it: in quotes unless it is a plain word or number."""
    plain = str(text)
    if plain.isidentifier() or plain.replace(".", "", 1).isdigit():
        return plain
    escaped = plain.replace('"', '\\"')
    return f'"{escaped}"'


def _attributes(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_quoted(value)}" for name, value in sorted(values.items()) if value is not None)


def _statement(subject: str, attributes: Mapping[str, object]) -> str:
    text = _attributes(attributes)
    return f"\t{subject} [{text}]\n" if text else f"\t{subject}\n"


def resize_graph(dot: Any, size_per_element: float = 0.15, min_size: float = 12) -> None:
    """Give a drawing a size that fits the number of its statements."""
    size = max(min_size, len(dot.body) * size_per_element)
    dot.graph_attr.update(size=f"{size:g},{size:g}")


def make_dot_from_trace(trace: Any) -> Any:
    """Refuse, as torchviz does: traces are not drawn."""
    raise NotImplementedError(
        "This function has been moved to pytorch core: draw the graph behind a tensor with make_dot, or print "
        "torch.fx.symbolic_trace(module).graph."
    )
