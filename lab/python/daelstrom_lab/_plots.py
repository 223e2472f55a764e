# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG, by matplotlib: each twice, for wide and for narrow screens. Colours are the page's own, so that a plot
follows its light and its dark; text stays text."""

from __future__ import annotations

import dataclasses
import io
import itertools
import math
import re
from collections.abc import Callable, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from . import _words as words
from ._content import Legend, Plot

matplotlib.use("svg")

# matplotlib draws in colours that nobody sees; the page's own take their places.
ROLES = ("ink", "muted", "grid", "surface", "c1", "c2", "c3", "c4", "c5", "c6", "c7")
STAND_IN = {role: f"#0100{number:02x}" for number, role in enumerate(ROLES)}
SERIES = [role for role in ROLES if re.fullmatch(r"c\d", role)]
# What comes often has a colour of its own throughout the page.
KNOWN = (
    ("keystream by cuda", "c3"),
    ("keystream", "c5"),
    ("libtomcrypt", "c6"),
    ("openssl", "c4"),
    ("memcpy", "muted"),
    ("copy", "muted"),
    ("copies", "muted"),
    ("libipsec", "c2"),
    ("daelstrom", "c1"),
    ("cuda", "c3"),
    ("opencl", "c2"),
    ("opengl", "c6"),
    ("cpu", "c1"),
)
WIDE, NARROW = 760, 358  # px; one unit of the SVG is one px there
NUMBERS = itertools.count()
LOG_FROM = 20  # what lies closer together is read more easily on a scale from 0
STYLE = {
    "svg.fonttype": "none",
    "font.size": 12,
    "axes.edgecolor": STAND_IN["grid"],
    "axes.labelcolor": STAND_IN["muted"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titlecolor": STAND_IN["ink"],
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": STAND_IN["grid"],
    "grid.linewidth": 0.8,
    "text.color": STAND_IN["ink"],
    "xtick.color": STAND_IN["grid"],
    "xtick.labelcolor": STAND_IN["muted"],
    "ytick.color": STAND_IN["grid"],
    "ytick.labelcolor": STAND_IN["muted"],
    "lines.linewidth": 2,
    "lines.markersize": 5,
}


@dataclasses.dataclass
class Series:
    """Points of one line: x, y, and least and most of y."""

    name: str
    points: list[tuple[float, float, float, float]]
    colour: str = ""
    line: str = "solid"


@dataclasses.dataclass
class Bar:
    """A bar with its spread, and a mark beside it, such as the same in another year."""

    name: str
    value: float
    least: float
    most: float
    colour: str = "c1"
    mark: float | None = None
    says: str = ""  # beside the bar, in place of the value


def coloured(series: Sequence[Series]) -> None:
    """Gives each line a colour that no other of the plot has; what is known by name first."""
    taken = {one.colour for one in series if one.colour}
    for one in series:
        known = next((colour for word, colour in KNOWN if word in one.name.lower()), "")
        if not one.colour and known and known not in taken:
            one.colour = known
            taken.add(known)
    for one in series:
        if not one.colour:
            free = [colour for colour in SERIES if colour not in taken]
            one.colour = free[0] if free else SERIES[len(series) % len(SERIES)]
            one.line = one.line if free else "dot"  # a colour's second line looks otherwise
            taken.add(one.colour)


def _svg(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>\s*", "", drawn, flags=re.S)
    drawn = re.sub(r"#0100([0-9a-f]{2})", lambda found: f"var(--{ROLES[int(found[1], 16)]})", drawn)
    drawn = re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>',
        r'<svg viewBox="\1" aria-hidden="true" focusable="false">',
        drawn,
        count=1,
    )
    drawn = re.sub(r"<style.*?</style>", "", drawn, flags=re.S)  # it would be the whole page's
    drawn = re.sub(
        r"; font-family: [^;\"]*|xlink:(?=href)", "", drawn
    )  # the page's font; plain links without the declarations
    drawn = re.sub(r"<!--.*?-->|(?<=<g) id=\"[^\"]*\"", "", drawn, flags=re.S)  # groups' names are those of every plot
    return re.sub(r">\s+<", "><", drawn).strip()


def drawing(
    caption: str, draw: Callable[[Figure, bool], None], height: Callable[[bool], float], legend: Sequence[Legend] = ()
) -> Plot:
    made = []
    for narrow in (False, True):
        salt = f"{next(NUMBERS)}"  # names inside of one drawing are not those of another
        with matplotlib.rc_context({**STYLE, "svg.hashsalt": salt}):
            figure = Figure(
                figsize=((NARROW if narrow else WIDE) / 72, height(narrow) / 72), dpi=72, layout="constrained"
            )
            draw(figure, narrow)
            made.append(_svg(figure))
    return Plot(caption, made[0], made[1], legend)


def _rate_axis(axes: Axes, log: bool, most: float, unit: str) -> None:
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(base=10, numticks=8))
        low, high = axes.get_ylim()
        if math.log10(high / low) < 2:  # too few powers of ten to read by
            axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.05 * most or 1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(unit, fontsize=11, color=STAND_IN["muted"], loc="right")


def _binary_axis(axes: Axes, values: list[float], most: int, form: Callable[[float], str], label: str) -> None:
    axes.set_xscale("log", base=2)
    step = math.ceil((len(values) - 1) / (most - 1)) or 1
    axes.set_xticks(values[::step], [form(value) for value in values[::step]])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)


def lines(
    caption: str,
    panels: dict[str, list[Series]],
    *,
    x_label: str,
    unit: str = "GB/s",
    log: bool = True,
    form: Callable[[float], str] = words.size,
    binary: bool = True,
) -> Plot:
    """Panels beside each other, on narrow screens below each other, on the same scale."""
    by_name: dict[str, Series] = {}
    for panel in panels.values():
        for one in panel:
            by_name.setdefault(one.name, one)
    coloured(list(by_name.values()))
    rates = [y for panel in panels.values() for one in panel for _, y, *_ in one.points]
    most = max(high for panel in panels.values() for one in panel for *_, high in one.points)
    log = log and min(rates) > 0 and max(rates) / min(rates) > LOG_FROM
    count = len(panels)
    columns = min(count, 3 if count != 4 else 2)

    def draw(figure: Figure, narrow: bool) -> None:
        across = 1 if narrow else columns
        grid = figure.subplots(math.ceil(count / across), across, squeeze=False, sharey=not narrow)
        for axes, (title, panel) in zip(grid.flat, panels.items(), strict=False):
            values = sorted({x for one in panel for x, *_ in one.points})
            for one in panel:
                like = by_name[one.name]
                xs, ys, low, high = zip(*sorted(one.points), strict=True)
                colour = STAND_IN[like.colour]
                axes.fill_between(xs, low, high, color=colour, alpha=0.13, linewidth=0)
                axes.plot(xs, ys, color=colour, marker="o", linestyle={"dot": ":"}.get(like.line, like.line))
            if binary:
                _binary_axis(axes, values, 4 if narrow else 7 if across == 1 else 3, form, x_label)
            else:
                axes.set_xlabel(x_label)
                axes.set_xlim(left=0)
                axes.locator_params(axis="x", nbins=4 if narrow or across > 1 else 8)
                axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))
            axes.grid(axis="y")
            _rate_axis(axes, log, most, unit)
            axes.set_title(title)
        for axes in list(grid.flat)[count:]:
            axes.set_visible(False)

    def height(narrow: bool) -> float:
        return 250.0 * count if narrow else 310.0 * math.ceil(count / columns)

    return drawing(caption, draw, height, [Legend(one.name, one.colour, one.line) for one in by_name.values()])


def bars(
    caption: str,
    each: Sequence[Bar],
    *,
    unit: str = "GB/s",
    mark: str = "",
    log: bool = False,
    legend: Sequence[Legend] = (),
    limit: tuple[float, str] | None = None,
) -> Plot:
    """Bars that lie, the first on top, each with its value at the end; `limit` is a line across them."""

    def draw(figure: Figure, narrow: bool) -> None:
        axes = figure.subplots()
        places = range(len(each))
        axes.barh(list(places), [one.value for one in each], color=[STAND_IN[one.colour] for one in each], height=0.62)
        for place, one in zip(places, each, strict=True):
            axes.plot([one.least, one.most], [place, place], color=STAND_IN["ink"], linewidth=1, alpha=0.55)
            if one.mark is not None:
                axes.plot(
                    [one.mark],
                    [place],
                    marker="D",
                    markersize=6,
                    color=STAND_IN["surface"],
                    markeredgecolor=STAND_IN["ink"],
                    markeredgewidth=1.4,
                    linestyle="none",
                )
            end = max(one.most, one.mark or 0)
            axes.annotate(
                one.says or words.digits(one.value),
                (end, place),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=11,
                color=STAND_IN["ink"],
            )
        if limit:
            axes.axvline(limit[0], color=STAND_IN["muted"], linestyle="--", linewidth=1.2)
        axes.set_yticks(list(places), [_broken(one.name, 24 if narrow else 46) for one in each], color=STAND_IN["ink"])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.spines["left"].set_visible(False)
        most = max([max(one.most, one.mark or 0) for one in each] + ([limit[0]] if limit else []), default=1.0)
        if log:
            positive = [one.least for one in each if one.least > 0] + [one.mark for one in each if one.mark]
            axes.set_xscale("log")
            axes.set_xlim(min(positive, default=most) / 2, most * (10 if narrow else 3))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.set_xlim(0, most * (1.28 if narrow else 1.14) or 1)
            axes.locator_params(axis="x", nbins=3 if narrow else 6)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel(unit)
        axes.grid(axis="x")
        axes.set_axisbelow(True)

    def height(narrow: bool) -> float:
        most = max((_broken(one.name, 24 if narrow else 46).count("\n") for one in each), default=0)
        return 60.0 + len(each) * (22 + 14 * most)  # bars stand at equal distances

    marked = [Legend(mark, "ink", "mark")] if mark and any(one.mark is not None for one in each) else []
    limited = [Legend(f"{limit[1]}, {limit[0]:g}", "muted", "dashed")] if limit else []
    return drawing(caption, draw, height, [*legend, *marked, *limited])


def _broken(name: str, most: int) -> str:
    """A name on lines of at most so many letters, where words allow it."""
    made, line = [], ""
    for word in name.split(" "):
        if line and len(line) + 1 + len(word) > most:
            made.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*made, line])
