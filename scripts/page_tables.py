# SPDX-License-Identifier: Apache-2.0
"""What the scripts share that put tables of rates into a page, between its bench markers."""

BEGIN, END = "<!-- bench:begin -->\n", "<!-- bench:end -->\n"
NAMES = {"ctr": "CTR", "ecb": "ECB", "cbc": "CBC", "cfb": "CFB", "ofb": "OFB"}


class Fault(Exception):
    """What stands against a table, in one line."""


def digits(value):
    """Three significant digits, as the program's own table has them."""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def size_name(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} bytes"


def table(titles, lines):
    """The lines of a table whose first column is words and whose others are numbers, and an empty one."""
    return ["| " + " | ".join(titles) + " |", "|---|" + "--:|" * (len(titles) - 1),
            *("| " + " | ".join(line) + " |" for line in lines), ""]


def rewritten(page, name, inside, markers=(BEGIN, END)):
    """The page's text with `inside` between its markers."""
    before, begin, rest = page.partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not begin or not end:
        raise Fault(f"{name} has no lines {markers[0].strip()} and {markers[1].strip()}, in this order")
    return before + begin + inside + end + after
