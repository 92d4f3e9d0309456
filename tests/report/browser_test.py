#!/usr/bin/python3
"""The report of real runs in a browser: what is shown, in windows of several sizes, by the mouse and the keys.

usage: browser_test.py STIEFEL Browser|Names [unittest options]; REPORT_SCREENSHOTS=FOLDER keeps pictures of the page.
"""
import csv
import io
import os
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as xml

import h5py
import numpy

import browser
import hostile_names
import runs
from pages import PROGRAM, SVG, Made, empty_folder, report, figures, read

OPEN_ALL = "for (const d of document.querySelectorAll('figure[data-lines] .drawing')) d.dispatchEvent(new PointerEvent('pointerenter'));"
# How many pixels charts are off from the figures below them: cursors at the first two x, and named values of y.
LIE_OVER = """
  return [...document.querySelectorAll('figure[data-lines]')].map(figure => {
    const drawing = figure.querySelector('.drawing'), [from, to, kind] = drawing.dataset.x.split(' '), f = kind === 'log' ? Math.log : Number;
    const frame = drawing.querySelector('.frame').getBoundingClientRect(), middle = e => (r => r.top + r.height / 2)(e.getBoundingClientRect());
    const cursors = ['Home', 'ArrowRight'].map(key => {
      drawing.dispatchEvent(new KeyboardEvent('keydown', {key}));
      const value = Number(figure.querySelector('.reading b').innerText.split(': ')[1].replace('−', '-'));
      return Math.abs(figure.querySelector('.cursor').getBoundingClientRect().left - frame.left - frame.width * (f(value) - f(from)) / (f(to) - f(from)));
    });
    const ticks = [];
    for (const text of drawing.querySelectorAll('.ticks.y text'))
      for (const label of figure.querySelectorAll('.dygraph-axis-label-y'))
        if (label.innerText === text.textContent && Math.min(middle(text) - frame.top, frame.bottom - middle(text)) > 15) ticks.push(Math.abs(middle(label) - middle(text)));
    return {id: figure.id, kind, cursors, ticks};
  });"""
KEYS_AND_MOUSE = """
  const figure = document.querySelector('#valid_accuracy'), drawing = figure.querySelector('.drawing'), found = {};
  const press = key => drawing.dispatchEvent(new KeyboardEvent('keydown', {key}));
  const shown = () => [...figure.querySelectorAll('.dygraph-axis-label-x')].map(label => Number(label.innerText));
  const mouse = (kind, share, target) => {
    const frame = drawing.querySelector('.frame').getBoundingClientRect();
    target.dispatchEvent(new MouseEvent(kind, {bubbles: true, clientX: frame.left + share * frame.width, clientY: frame.top + 100}));
  };
  const drag = () => {
    const canvas = [...figure.querySelectorAll('canvas')].at(-1);
    mouse('mousedown', 0.24, canvas), mouse('mousemove', 0.5, document), mouse('mousemove', 0.76, document), mouse('mouseup', 0.76, document);
    return shown();
  };
  ['Home', 'ArrowRight', 'ArrowRight'].forEach(press);
  found.read = figure.querySelector('.reading').innerText;
  found.focusable = drawing.tabIndex;
  found.role = drawing.role;
  found.shortcuts = drawing.getAttribute('aria-keyshortcuts');
  found.whole = shown();
  press('+');
  found.enlarged = shown();
  press('Home');
  found.moved = shown();
  press('-');
  found.less = shown();
  found.dragged = drag();
  press('Escape');
  found.escaped = shown();
  drag();
  figure.querySelectorAll('canvas')[1].dispatchEvent(new MouseEvent('dblclick', {bubbles: true}));
  found.clicked_twice = shown();
  dispatchEvent(new Event('beforeprint'));
  found.folded = document.querySelectorAll('details:not([open])').length;
  return found;"""
# What a page is made of, after its charts have been opened; and its texts by the elements that hold them.
CONTENT = """
  for (const d of document.querySelectorAll('figure[data-lines] .drawing')) d.dispatchEvent(new KeyboardEvent('keydown', {key: 'Home'}));
  const all = [...document.querySelectorAll('*')], attributes = all.flatMap(e => [...e.attributes].map(a => [e.localName, a.name, a.value]));
  const texts = selector => [...document.querySelectorAll(selector)].map(e => e.textContent), different = list => [...new Set(list)];
  return {tags: different(all.map(e => e.localName)), attributes: different(attributes.map(a => a[1])), ids: all.map(e => e.id).filter(id => id),
    links: different(attributes.filter(a => ['href', 'src', 'action', 'content', 'http-equiv'].includes(a[1])).map(a => a[2].slice(0, 30))),
    scripts: document.scripts.length, styles: document.styleSheets.length, opened: document.querySelectorAll('.live').length,
    hit: document.documentElement.dataset.hit ?? null, address: location.protocol, title: document.title, h1: texts('h1'), note: texts('.note'),
    cells: texts('td, th'), h3: texts('h3'), captions: texts('figcaption'), legends: texts('.legend text, .groups li'), labels: texts('.label'),
    descriptions: texts('desc'), drawn_titles: texts('svg title'), rows: texts('.ticks.y text'), readings: texts('.reading span')};"""
TAGS = set("html head meta title style body main header h1 h2 h3 p nav ul li a section div figure figcaption span svg desc g path text tspan rect "
           "ellipse image table caption thead tbody tr th td details summary script canvas b input wbr".split())
LINKS = ["#", "data:text/csv;base64,", "data:image/png;base64,", "default-src 'none'; ", "Content-Security-Policy", "width=device-width"]


class Shown(unittest.TestCase):
    def measured(self, script, page, **options):
        found, console = browser.returned(page, script, **options)
        self.assertEqual(console, [])
        return found


class Browser(Made, Shown):
    steps = 10**5

    @unittest.skipUnless(os.environ.get("REPORT_SCREENSHOTS"), "REPORT_SCREENSHOTS names no folder")
    def test_pictures(self):
        for name in ("sweep", "generation"):
            for width, height in ((1200, 5200), (500, 9000)):
                for dark in (False, True):
                    picture = pathlib.Path(os.environ["REPORT_SCREENSHOTS"]) / f"{name}_{width}_{'dark' if dark else 'light'}.png"
                    browser.screenshot(self.folder / f"{name}.html", picture, width, height, dark)
                    self.assertTrue(picture.exists())

    def test_page(self):
        for page in (self.page, self.folder / "generation.html"):
            drawn = figures(page.read_text())
            readings = self.measured("return document.querySelectorAll('[class=reading]').length", page)
            self.assertEqual(readings, sum("data-lines" in figure.attrib for figure in drawn.values()))
        for dark in (True, False):
            shown_dark = self.measured("return matchMedia('(prefers-color-scheme: dark)').matches", self.page, dark=dark)
            self.assertEqual(shown_dark, dark)

    def test_nothing_is_wider_than_a_narrow_window(self):
        widths = "return [innerWidth, document.documentElement.scrollWidth, document.querySelectorAll('.live').length > 5]"
        self.assertEqual(self.measured(OPEN_ALL + widths, self.page, width=400), [400, 400, True])

    def test_no_text_of_a_figure_is_cut(self):
        for page in (self.page, self.folder / "generation.html", self.folder / "long.html"):
            self.assertEqual(self.measured("""return [...document.querySelectorAll('.drawing')].flatMap(drawing => {
                const outer = drawing.getBoundingClientRect();
                return [...drawing.querySelectorAll('text')].filter(text => {
                  const inner = text.getBoundingClientRect();
                  return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
                }).map(text => text.textContent);
              }).join('; ')""", page=page), "")

    def test_charts_lie_over_their_figures(self):
        with empty_folder() as folder:
            runs.make_copies(self.sweep["elman, householder"][0], folder / "runs", 10)  # rates: 0.001 to 0.01
            report("runs", "--by", "name", "--against", "optimizer.rate", folder=folder)
            for page, kinds in ((self.page, {"linear"}), (folder / "report.html", {"linear", "log"})):
                found = self.measured(OPEN_ALL + LIE_OVER, page=page, width=1000)
                self.assertEqual({figure["kind"] for figure in found}, kinds)
                for figure in found:
                    with self.subTest(figure=figure["id"]):
                        self.assertLess(max(figure["cursors"]), 1.5)
                        self.assertLess(max(figure["ticks"], default=0), 2.5)
                self.assertGreater(sum(len(figure["ticks"]) for figure in found), 20)

    def test_keys_and_mouse_read_and_enlarge(self):
        found = self.measured(KEYS_AND_MOUSE, self.page)
        lines = [line for line in found["read"].split("\n") if line]
        self.assertEqual(lines[0], "optimizer step: 60")
        self.assertEqual(len(lines), 1 + len(self.sweep))
        for line, label in zip(lines[1:], self.sweep):
            name, value = line.rsplit(": ", 1)
            self.assertEqual(name, label)
            self.assertAlmostEqual(float(value), numpy.median([read(f, "epochs/valid_accuracy")[-1] for f in self.sweep[label]]), delta=1e-4)
        self.assertEqual(found["focusable"], 0)
        self.assertEqual(found["role"], "application")
        self.assertEqual(found["shortcuts"], "ArrowLeft ArrowRight Home End + - Escape")
        self.assertEqual((found["whole"][0], found["whole"][-1]), (20, 60))
        self.assertEqual((found["enlarged"][0], found["enlarged"][-1]), (40, 60))
        self.assertEqual((found["moved"][0], found["moved"][-1]), (20, 40))
        self.assertEqual(found["less"], found["whole"])
        self.assertEqual((found["dragged"][0], found["dragged"][-1]), (30, 50))
        self.assertEqual(found["escaped"], found["whole"])
        self.assertEqual(found["clicked_twice"], found["whole"])
        self.assertEqual(found["folded"], 0)

    def test_print(self):
        report("runs/three maps", "--pdf", "report.pdf", folder=self.folder)
        self.assertTrue((self.page.parent / "report.pdf").read_bytes().startswith(b"%PDF-"))


class Names(Shown):
    @classmethod
    def setUpClass(cls):
        cls.original = runs.run(PROGRAM, cls.enterClassContext(empty_folder()), runs.ADDING.format(name="names"))

    def test_hostile_names_stay_text(self):
        """In every text of the page and of its figures, and as names of folders."""
        self.assertEqual(len(set(hostile_names.NAMES)), 100)
        protected = 0
        for first in range(0, 100, 6):  # of more values, tables show the first six
            names = hostile_names.NAMES[first:first + 6]
            with self.subTest(first=first), empty_folder() as folder:
                hostile_names.make(self.original, folder / "runs", names)
                done = report("runs", "--by", "note", "--title", names[0], "--metric", f"epochs/valid_{hostile_names.of_link(names[-1])}",
                              "--figures", "figures", "--output", "report.html", folder=folder, expected=6)
                self.assertEqual(done.stderr.count("unreadable: "), len(names), done.stderr)
                self.assertFalse(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stderr))
                self.compare_with(names, self.measured(CONTENT, page=folder / "report.html"))
                for path in (folder / "figures").iterdir():
                    self.assertRegex(path.name, r"^[a-z0-9_]{1,110}\.(svg|csv)$")
                    if path.suffix == ".svg":
                        tags = {element.tag.removeprefix(SVG) for element in xml.fromstring(path.read_text()).iter()}
                        self.assertLessEqual(tags, TAGS)
                    else:
                        cells = [cell for row in csv.reader(io.StringIO(path.read_text(), newline="")) for cell in row]
                        self.assertEqual([cell for cell in cells if re.match(r"[=+@]|-[^\d.]", cell)], [])
                        protected += sum(cell.startswith("'=1+1") for cell in cells)
        self.assertGreater(protected, 0)

    def compare_with(self, names, page):
        self.assertLessEqual(set(page["tags"]), TAGS)
        self.assertEqual([name for name in page["attributes"] if name.startswith("on")], [])
        self.assertEqual([link for link in page["links"] if not any(link.startswith(start) for start in LINKS)], [])
        self.assertEqual((page["scripts"], page["styles"], page["hit"], page["address"]), (1, 1, None, "file:"))
        self.assertGreater(page["opened"], 5)
        self.assertEqual(len(page["ids"]), len(set(page["ids"])))
        for identity in page["ids"]:
            self.assertRegex(identity, r"^[a-z0-9_-]+$")

        def as_shown(name):
            """Control characters and what XML lacks as the page shows them."""
            shown = re.sub("[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]", lambda found: "".join(f"\\x{byte:02x}" for byte in found[0].encode()), name)
            return shown.replace("\ufffe", "\ufffd")
        page["readings"] = [reading.replace("\ufffe", "\ufffd") for reading in page["readings"]]  # which are no XML
        self.assertEqual(page["h1"], [as_shown(names[0])])
        self.assertEqual(page["title"], " ".join(as_shown(names[0]).split()))
        for name in names:
            shown, label, link = as_shown(name), f"note={as_shown(name)}", as_shown(hostile_names.of_link(name))
            for place, text in (("cells", shown), ("cells", label), ("cells", f"{shown}: {shown}"), ("cells", f"data {shown}"), ("cells", "")):
                self.assertIn(text, page[place], (place, name))
            for place, text in (("note", shown), ("cells", f"runs/{names.index(name)}3{link}"), ("h3", link), ("drawn_titles", link), ("legends", label),
                                ("descriptions", label), ("rows", label), ("readings", label.replace("\n", r"\n"))):
                self.assertTrue(any(text in found for found in page[place]), (place, name, page[place]))

    def test_titles_are_limited(self):
        with empty_folder() as folder:
            hostile_names.make(self.original, folder / "runs", ["short"])
            run = folder / "runs" / "01short"
            with h5py.File(run / "results.h5", "r+") as file:
                file.attrs["title"] = file["epochs/valid_loss"].attrs["units"] = "x" * 60000
                for group in ("spectrum", "orthogonality"):
                    file.move(f"{group}/short", f"{group}/{'y' * 5000}")
                file.move("epochs/valid_short", "epochs/valid_" + "z" * 5000)
            report(run, "--figures", "figures", "--output", "report.html", folder=folder)
            page = self.measured(CONTENT, page=folder / "report.html")
            self.assertEqual((page["h1"], page["title"]), (["x" * 199 + "…"], "x" * 199 + "…"))
            for place, most in (("h3", 200), ("drawn_titles", 200), ("labels", 62), ("legends", 250)):
                self.assertLessEqual(max(map(len, page[place])), most, place)
            self.assertEqual(len([path for path in (folder / "figures").iterdir() if re.match("[a-z]*_[yz_]|singular_values_y", path.name)]), 6)


if __name__ == "__main__":
    if not browser.find():
        print("skipped: there is no Chromium (Debian: chromium)")
        sys.exit(77)
    unittest.main()
