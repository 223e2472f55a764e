#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""describe.py daelstrom/_core.pyi OUTPUT: signatures and docstrings of the stub file as a table for the compiled module,
so that help() says what an editor says."""

from __future__ import annotations

import ast
import inspect
import json
import pathlib
import sys
from collections.abc import Iterator


def signature(function: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"def {function.name}({ast.unparse(function.args)}){returns}"


def rows(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield one.name, "", ast.get_docstring(one) or ""
            yield from rows(one.body, one.name + ".")
        elif isinstance(one, ast.FunctionDef):
            # Of overloads the last one takes everything, and is the one that says what it does.
            found[prefix + one.name] = (signature(one), ast.get_docstring(one) or "")
    for name, (line, text) in found.items():
        yield name, line, text


def main(source: str, output: str) -> None:
    lines = [
        f"    {{{json.dumps(name)}, {json.dumps(line)}, {json.dumps(inspect.cleandoc(text))}}},"
        for name, line, text in rows(ast.parse(pathlib.Path(source).read_text()).body)
    ]
    pathlib.Path(output).write_text("// Made by describe.py of _core.pyi.\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
