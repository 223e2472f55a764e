# SPDX-License-Identifier: Apache-2.0
"""The report of `daelstrom lab`: made from samples and from a run of the program, and looked at in a browser."""

import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys

import chromium
import pytest
import report_samples as samples

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("markdown")

import daelstrom_lab as lab  # noqa: E402
from daelstrom_lab import _documents, _words  # noqa: E402
from daelstrom_lab.sections import SECTIONS, overlap, placement  # noqa: E402

LIMIT = 2 << 20  # bytes of a page
VOID = {"meta", "link", "img", "br", "hr"}


class Tree(html.parser.HTMLParser):
    """A page's elements, and whether each one ends."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.elements, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("full")
    samples.write(folder / "run")
    lab.report(folder / "run", folder / "report.html")
    return folder / "report.html"


def report_of(tmp_path, *studies):
    samples.write(tmp_path / "run", studies)
    lab.report(tmp_path / "run", tmp_path / "report.html")
    return (tmp_path / "report.html").read_text()


def test_every_study_has_its_plots_its_tables_and_its_sentences(full):
    text = full.read_text()
    page = Tree(text)
    assert len(full.read_bytes()) < LIMIT
    for study in samples.STUDIES:
        name = study()["suite"]
        part = re.search(f'<section class="study" id="{name}".*?</section>', text, re.S)[0]
        assert part.count("<svg") >= 2, name  # wide and narrow
        assert part.count("<table") >= 2 or name == "rotation", name
        assert len(re.findall('class="says"', part)) >= 2, name
        assert f"All {len(study()['rows'])} rows" in part, name
    assert len(page.ids) == len(set(page.ids))
    targets = {link["href"][1:] for link in page.all("a") if link.get("href", "").startswith("#")}
    assert targets <= set(page.ids)
    labels = {label for _, attributes in page.elements for label in attributes.get("aria-labelledby", "").split()}
    assert labels <= set(page.ids)


def test_nothing_is_asked_of_the_network(full):
    text = full.read_text()
    for tag, attributes in Tree(text).elements:
        for name in ("src", "href", "xlink:href", "srcset", "action"):
            if name in attributes and not (tag == "a" and attributes[name].startswith("https:")):
                assert attributes[name].startswith(("#", "data:")), (tag, attributes)
        assert tag != "script"
    assert not re.search(r"url\((?!#)|@import", text)
    assert "default-src 'none'" in text


def test_the_first_screen_says_how_far_it_has_come(full):
    text = full.read_text()
    first = re.search('<section id="first".*?</section>', text, re.S)[0]
    for figure in ("936", "213× the fastest kernel of 2017", "47% of its ceiling", "94% of its ceiling", "65% in 2017"):
        assert figure in first, figure
    rows = re.findall(r"<tr><td>(\d+)</td><th scope=\"row\">(.*?)</th>.*?>([^<]*)</td></tr>", first)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows) and len(rows) >= 8
    assert "Not in this run" not in text
    assert "0.909×" in first  # a GPU beside the CPU, of whole files
    assert "A quick run, of small data" not in text
    assert "bias.md" not in first and 'href="#bias"' in text


def test_sentences_are_those_of_the_data(full):
    text = full.read_text()
    assert "the fastest of the thirteen kernels is number 1" in text
    assert "number 1 moved most, from place 12 to 1" in text
    assert "of 2 that must leak it found 2" in text
    assert "power cap" in text and "1790 MHz" in text
    assert "Under CBC and CTR hardly any block does" in text
    assert "Keystream made ahead of time by cuda gains a factor of 1.70" in text
    assert "“daelstrom encrypt, CPU” at 2.20 GB/s, 3.14× “openssl enc”" in text
    assert "CPU with AES-NI" in text and "CPU with VAES, 512 bits" in text
    assert "pays from 4 MiB on (CUDA, page-locked memory)" in text
    assert "fastest where the cores have 50% of it: 90.0 GB/s, 1.88× without the cores and 2.25× the cores alone" in text
    assert "The scheduler gives them 46%, and makes 85.5 GB/s, 95% of that" in text
    assert "of the GPUs and the processors at 50%: 7.78 J" in text
    assert "&lt;nothing&gt; to the left" in text  # what a document says is text


def test_of_copies_both_ways_one_is_always_to_be_seen():
    def way(ways, streams, rate, copies):
        return {"where": "pinned", "chunk": 1, "ways": ways, "streams": streams, "size": 100.0, "gbps": {"median": rate},
                "ceiling": {"gbps": copies}}  # fmt: skip

    # In and out take 2 each, both ways in sequence 4, with the kernel 5: of 4 at most 3 can be gained.
    rows = [way("in", 1, 40.0, 50.0), way("out", 1, 40.0, 50.0), way("both", 1, 20.0, 25.0), way("both", 4, 45.0, 25.0)]
    assert overlap.at_most(rows, rows[3]) == pytest.approx(0.75)
    assert overlap.at_most(rows[1:], rows[3]) is None


def test_few_samples_are_said(tmp_path):
    def few():
        document = samples.placement()
        document["rows"] = [{**row, "samples": 2} for row in document["rows"]]
        return document

    assert "than the usual 15: “placement” 2." in report_of(tmp_path, few)


def test_orders_are_compared_by_spearmans_correlation():
    same = [{"rank": n, "rank_2017": n} for n in range(1, 14)]
    turned = [{"rank": n, "rank_2017": 14 - n} for n in range(1, 14)]
    assert placement.correlation(same) == 1
    assert placement.correlation(turned) == pytest.approx(-1)


@pytest.mark.parametrize("value, text", [(936.4, "936"), (45, "45.0"), (0.375, "0.375"), (0.0024475, "0.00245"), (12345, "12,345"),
                                         (0, "0"), (9.999, "10.00"), (99.96, "100")])  # fmt: skip
def test_figures_have_three_digits(value, text):
    assert _words.digits(value) == text


def test_units():
    assert [_words.size(n) for n in (16, 1024, 1536, 1 << 20, 1 << 30)] == ["16 bytes", "1 KiB", "1.5 KiB", "1 MiB", "1 GiB"]
    assert [_words.span(s) for s in (2.0, 0.004, 5e-6, 1e-7)] == ["2.00 s", "4.00 ms", "5.00 µs", "100 ns"]
    assert [_words.share(s) for s in (0.0004, 0.47, 0)] == ["0.0400%", "47%", "0%"]


def test_a_study_that_measured_nothing_says_why(tmp_path):
    def empty(name):
        return lambda: samples.document(name, [], skipped=[f"{name}: no device <here>"])

    text = report_of(tmp_path, *(empty(section.study) for section in SECTIONS), empty("rotation"))
    Tree(text)
    for section in SECTIONS:
        assert f"{section.study}: no device &lt;here&gt;" in text
    assert "Not in this run" not in text


def test_one_study_alone(tmp_path):
    text = report_of(tmp_path, lambda: {**samples.energy(), "quick": 1, "load_before": 3000})
    assert "A quick run, of small data" in text and "its load was 30.0 on 16 cores" in text
    for section in SECTIONS:
        assert (f'id="{section.study}"' in text) == (section.study == "energy")
        assert (f"<strong>{section.study}</strong>" in text) == (section.study != "energy")


def test_a_processor_that_plays_a_device_makes_no_headline(tmp_path):
    def played():
        document = samples.placement()
        document["machine"] = {**samples.MACHINE, "driver": "OpenCL 3.0 PoCL HSTR"}
        return document

    text = report_of(tmp_path, played)
    assert "There is no GPU in this run" not in text  # its rows are CUDA's

    def of_opencl():
        document = played()
        document["rows"] = [{**row, "backend": "opencl:0"} for row in document["rows"]]
        return document

    assert 'class="cards"' in text and "(the GPU)" in text
    text = report_of(tmp_path, of_opencl)
    assert 'class="cards"' not in text and "There is no GPU in this run" in text
    assert "the order says nothing about GPUs" in text


@pytest.mark.parametrize("change, word", [
    ({"format": 2}, "format"), ({"format": None}, "format"), ({"suite": 3}, "suite"), ({"rows": {}}, "rows"), ({"machine": "mine"}, "machine"),
    ({"rows": [{"gbps": {"median": 1}}]}, "median, min and max"), ({"rows": [{"seconds": 1}]}, "number 1"),
])  # fmt: skip
def test_what_is_no_document_is_named(tmp_path, change, word):
    document = {**samples.energy(), **change}
    document = {name: value for name, value in document.items() if value is not None}
    (tmp_path / "odd.json").write_text(json.dumps(document))
    with pytest.raises(lab.ReportError, match=word) as fault:
        lab.report(tmp_path, tmp_path / "report.html")
    assert "odd.json" in str(fault.value)
    assert not (tmp_path / "report.html").exists()


def test_folders_that_hold_no_run(tmp_path):
    for folder, word in ((tmp_path / "nowhere", "is no folder"), (tmp_path, "no document")):
        with pytest.raises(lab.ReportError, match=word):
            lab.report(folder, tmp_path / "report.html")
    (tmp_path / "one.json").write_text("{")
    with pytest.raises(lab.ReportError, match="one.json.*no JSON"):
        _documents.read_run(tmp_path)
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(samples.energy()))
    with pytest.raises(lab.ReportError, match="two.json.*one.json"):
        _documents.read_run(tmp_path)


def test_a_picture_that_is_gone_is_named(tmp_path):
    samples.write(tmp_path / "run", [samples.picture])
    (tmp_path / "run" / "picture.png").unlink()
    with pytest.raises(lab.ReportError, match="picture.png"):
        lab.report(tmp_path / "run", tmp_path / "report.html")


def test_the_page_is_put_in_its_place_and_nothing_else_is_touched(tmp_path):
    """Beside it lies what somebody else calls so, it is behind a link, and the disk is full."""
    samples.write(tmp_path / "run", [samples.energy])
    (tmp_path / "report.html.new").write_text("mine")
    (tmp_path / "page").write_text("old")
    (tmp_path / "page").chmod(0o640)
    (tmp_path / "report.html").symlink_to("page")
    before = sorted(tmp_path.iterdir())
    program = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); from daelstrom_lab.__main__ import main; " \
        "sys.exit(main(sys.argv[1:]))"
    ran = run_module("report", tmp_path / "run", "-o", tmp_path / "report.html", program=(sys.executable, "-c", program))
    assert ran.returncode == 1 and "cannot write" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    assert (tmp_path / "page").read_text() == "old" and sorted(tmp_path.iterdir()) == before
    lab.report(tmp_path / "run", tmp_path / "report.html")
    assert (tmp_path / "report.html").is_symlink() and (tmp_path / "page").read_text().lower().startswith("<!doctype")
    assert (tmp_path / "page").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "report.html.new").read_text() == "mine" and sorted(tmp_path.iterdir()) == before
    ran = run_module("report", tmp_path / "run", "-o", "/dev/null")
    assert ran.returncode == 1 and "no regular file" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr


def run_module(*arguments, program=(sys.executable, "-m", "daelstrom_lab")):
    return subprocess.run([*program, *map(str, arguments)], capture_output=True, text=True)


def test_the_command_line(tmp_path):
    (tmp_path / "empty").mkdir()
    for status, word, arguments in [(2, "-o", ["report", tmp_path]), (2, "ACTION", []), (2, "juggle", ["juggle"]),
                                    (1, "no document", ["report", tmp_path / "empty", "-o", tmp_path / "page"]),
                                    (1, "nowhere", ["report", tmp_path / "nowhere", "-o", tmp_path / "page"])]:  # fmt: skip
        ran = run_module(*arguments)
        assert (ran.returncode, ran.stdout) == (status, ""), (arguments, ran.stderr)
        assert word in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    samples.write(tmp_path / "run", [samples.energy])
    ran = run_module("report", tmp_path / "run", "-o", tmp_path / "missing" / "page")
    assert ran.returncode == 1 and "cannot write" in ran.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path):
    samples.write(tmp_path / "run", [samples.energy])
    program = "import sys; sys.modules['matplotlib'] = None; from daelstrom_lab.__main__ import main; sys.exit(main(sys.argv[1:]))"
    ran = run_module("report", tmp_path / "run", "-o", tmp_path / "page", program=(sys.executable, "-c", program))
    assert ran.returncode == 1 and "'matplotlib'" in ran.stderr and "pip install" in ran.stderr, ran.stderr


@pytest.fixture
def program():
    path = os.environ.get("DAELSTROM", "")
    if not path or not pathlib.Path(path).with_name("daelstrom-lab").exists():
        pytest.skip("needs the program, and daelstrom-lab beside it")
    return path


def test_from_a_run_of_the_program(program, tmp_path):
    run = tmp_path / "-run"  # a name that looks like an option
    for arguments in (["run", "picture", "packets", "--quick", "--out", run], ["report", "-o", tmp_path / "report.html", "--", run]):
        ran = subprocess.run([program, "lab", *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path, timeout=240)
        assert (ran.returncode, ran.stderr) == (0, ""), (arguments, ran.stderr)
    text = (tmp_path / "report.html").read_text()
    Tree(text)
    assert "of 100 blocks of the ciphertext occur more than once" in text and "A quick run, of small data" in text
    assert "one core" in re.search('<section id="first".*?</section>', text, re.S)[0]
    assert 'alt="The picture, ECB"' in text or "libpng" in text


LOOK = """
(() => {
  const shown = one => one.checkVisibility() && one.getClientRects().length;
  const cut = [], edge = document.documentElement.clientWidth;
  for (const one of document.querySelectorAll('body *')) {
    if (!shown(one) || one.closest('svg') || one.closest('.skip')) continue;
    const style = getComputedStyle(one), box = one.getBoundingClientRect();
    const scrolls = ['auto', 'scroll'].includes(style.overflowX) && one.tabIndex == 0;
    if (style.display != 'inline' && one.scrollWidth > one.clientWidth + 1 && !scrolls) cut.push(one.outerHTML.slice(0, 120));
    if (!one.closest('.scroll') && (box.right > edge + 1 || box.left < -1)) cut.push('outside: ' + one.outerHTML.slice(0, 120));
  }
  for (const one of document.querySelectorAll('svg text')) {
    if (!shown(one)) continue;
    const box = one.getBoundingClientRect(), figure = one.closest('figure').getBoundingClientRect();
    if (box.right > edge || box.left < 0 || box.top < figure.top || box.bottom > figure.bottom + 2) cut.push('plot: ' + one.textContent);
    if (parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a < 9) cut.push('too small: ' + one.textContent);
  }
  return cut;
})()
"""


@pytest.fixture(scope="module")
def page():
    program = chromium.find()
    if program is None:
        pytest.skip("no Chromium here (Debian's package chromium-headless-shell)")
    opened = chromium.Page(program)
    yield opened
    opened.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_in_a_browser(full, page, width, dark, tmp_path):
    page.complaints.clear()
    page.requests.clear()
    page.open(full.as_uri(), width, dark=dark)
    page.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.complaints == []
    assert {address for address in page.requests if not address.startswith("data:")} == {full.as_uri()}
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.run(LOOK) == []
    assert page.run("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    shown = page.run("[...document.querySelectorAll('figure.plot')].map(one => [...one.querySelectorAll('svg')]"
                     ".filter(svg => svg.checkVisibility()).length)")  # fmt: skip
    assert shown and set(shown) == {1}
    ink, paper = (page.run(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert (sum(map(int, re.findall(r"\d+", ink))) > sum(map(int, re.findall(r"\d+", paper)))) == dark
    file = pathlib.Path(os.environ.get("DAELSTROM_SCREENSHOTS", tmp_path)) / f"report-{width}-{'dark' if dark else 'light'}.png"
    page.screenshot(file)
    assert file.stat().st_size > 50_000


def test_contrast_is_enough_to_read(full, page):
    """As WCAG 2 asks: 4.5 to 1 for text on every ground that it has, 3 to 1 for what plots draw."""
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for dark in (False, True):
        page.open(full.as_uri(), 1280, dark=dark)
        names = ["paper", "surface", "soft", "ink", "muted", "accent", *(f"c{number}" for number in range(1, 8))]
        colours = dict(zip(names, page.run(f"""{names}.map(name => {{
            document.body.style.color = `var(--${{name}})`; return getComputedStyle(document.body).color; }})""")))
        for text in names[3:]:
            for ground in names[:3]:
                bright, dim = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
                assert (bright + 0.05) / (dim + 0.05) >= (3 if text[1:].isdigit() else 4.5), (dark, text, ground)


def test_without_a_mouse(full, page):
    """Tables can be reached and scrolled by keys, and have names; headings go down a step at a time; there are landmarks."""
    page.open(full.as_uri(), 390)
    page.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    regions = page.run("""[...document.querySelectorAll('table')].map(one => one.closest('.scroll')).map(one =>
        [one.tabIndex, one.getAttribute('role'), Boolean(one.getAttribute('aria-label') ||
         document.getElementById(one.getAttribute('aria-labelledby')).textContent)])""")
    assert regions and all(region == [0, "region", True] for region in regions)
    reached = set()
    for _ in range(12):
        page.press("Tab")
        reached.add(page.run("document.activeElement.className + document.activeElement.tagName"))
    assert "scrollDIV" in reached, reached
    assert page.run("""(() => { const one = [...document.querySelectorAll('.scroll')].find(one => one.scrollWidth > one.clientWidth + 20);
        one.focus(); return document.activeElement === one; })()""")
    for _ in range(3):
        page.press("ArrowRight")
    assert page.run("new Promise(done => setTimeout(() => done(document.activeElement.scrollLeft > 0), 300))")
    levels = page.run("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(one => Number(one.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1 and all(after - before <= 1 for before, after in zip(levels, levels[1:]))
    assert page.run("['header', 'main', 'nav', 'footer'].every(name => document.querySelectorAll(name).length == 1)")
    assert page.run("document.documentElement.lang") == "en"
