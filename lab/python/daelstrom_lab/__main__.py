# SPDX-License-Identifier: Apache-2.0
"""python3 -m daelstrom_lab report DIR -o FILE. Exit status: 0 done, 1 it failed, 2 the command line is wrong."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from . import ReportError, report


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the program does."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"daelstrom: {message}\n")


def main(arguments: list[str]) -> int:
    parser = Parser(prog="daelstrom lab", description="The page that shows a run of the lab.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)
    action = actions.add_parser("report", help="write one page of HTML from the documents in a folder")
    action.add_argument("folder", metavar="DIR", help="what `daelstrom lab run --out` has written")
    action.add_argument("-o", "--output", metavar="FILE", required=True, help="the page")
    chosen = parser.parse_args(arguments)
    try:
        report(chosen.folder, chosen.output)
    except ModuleNotFoundError as fault:
        missing = f"the report needs the Python package {fault.name!r}, which {sys.executable} does not have"
        return complain(f"{missing}; install it there: pip install matplotlib Jinja2 Markdown")
    except ReportError as fault:
        return complain(str(fault))
    except OSError as fault:
        return complain(f"cannot write {chosen.output!r}: {fault.strerror}; give -o a place that can be written")
    return 0


def complain(message: str) -> int:
    print("daelstrom: " + " ".join(message.split()), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
