#!/usr/bin/python3
"""The site that scripts/site.sh builds is whole, needs nothing from elsewhere, and works from files in a browser.

usage: site_test.py ROOT STIEFEL; the packages of the site come from PyPI
"""
import collections
import csv
import html.parser
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT, PROGRAM = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(ROOT / "tests/report"))
import browser

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(html.parser.HTMLParser):
    """The links, the files that are loaded, and the places of a page."""

    def __init__(self, file):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.places |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if attributes.get(LOADED.get(tag)) and attributes.get("rel") not in ("index", "search", "next", "prev", "canonical"):
            self.loaded.append(attributes[LOADED[tag]])


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name) / "site"
        built = subprocess.run([ROOT / "scripts/site.sh", cls.folder], capture_output=True, text=True,
                               env={**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"})
        if "could not be installed" in built.stderr:
            print(f"skipped: {built.stderr.splitlines()[-1]}")
            sys.exit(77)
        assert built.returncode == 0, built.stderr
        cls.pages = {file: Page(file) for file in sorted(cls.folder.rglob("*.html"))}
        assert len(cls.pages) > 30, cls.pages

    def test_links(self):
        broken = []
        for file, page in self.pages.items():
            for link in page.links + page.loaded:
                parts = urllib.parse.urlsplit(link)
                if parts.scheme or parts.netloc:
                    continue
                target = (file.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else file
                place = urllib.parse.unquote(parts.fragment)
                if not target.is_file() or (place and target in self.pages and place not in self.pages[target].places):
                    broken.append(f"{file.relative_to(self.folder)}: {link}")
        self.assertEqual(broken, [])

    def test_nothing_from_elsewhere(self):
        found = [f"{file.name}: {name}" for file, page in self.pages.items() for name in page.loaded if "//" in name]
        found += [f"{file.name}: {text}" for file in self.folder.rglob("*.css") for text in ("@import", "url(http", "url(//") if text in file.read_text(encoding="utf-8")]
        self.assertEqual(found, [])

    def test_every_page(self):
        """No error in the console, and nothing wider than a phone."""
        for file in self.pages:
            if file.name in ("index.html", "genindex.html"):
                continue
            with self.subTest(file.name):
                wider, console = browser.returned(file, "return document.documentElement.scrollWidth - innerWidth;", width=400)
                self.assertEqual((console, max(wider, 0)), ([], 0))

    def test_published(self):
        """A row for each that stiefel knows, and filters that leave the ones that fit."""
        listed = json.loads(subprocess.run([PROGRAM, "reproduce", "list", "--json", "--experiments", ROOT / "experiments", "-o", self.folder / "none"],
                                           check=True, capture_output=True).stdout)
        page = self.folder / "docs/PUBLISHED.html"
        found, console = browser.returned(page, """
            const rows = () => [...document.querySelectorAll('.published tbody tr')].filter(row => row.checkVisibility());
            const texts = () => rows().map(row => [...row.cells].map(cell => cell.innerText));
            const set = (name, value) => { const field = document.querySelector('.filters ' + name); field.value = value; field.dispatchEvent(new Event('input', {bubbles: true})); };
            const found = {all: texts()};
            set('select[name=verdict]', 'matched'); found.matched = rows().length;
            set('select[name=paper]', 'ornn'); set('input', 'lstm'); found.some = texts();
            found.count = document.querySelector('.filters output').value;
            return found;""")
        self.assertEqual(console, [])
        self.assertEqual([row[2] for row in found["all"]], [row["row"] for row in listed])
        self.assertEqual(found["matched"], sum(row["state"] == "matched" for row in listed))
        expected = [row["row"] for row in listed if row["state"] == "matched" and row["paper"] == "ornn" and "lstm" in json.dumps([row["row"], row["item"], row["metric"]]).lower()]
        self.assertEqual([row[2] for row in found["some"]], expected)
        self.assertEqual(found["count"], f"{len(expected)} of {len(listed)} rows")
        self.assertTrue(expected)
        command = found["some"][0][-1]
        self.assertIn("stiefel reproduce ornn --row ", command)
        planned = subprocess.run(["sh", "-c", f"{command} --dry-run -o none --experiments '{ROOT}/experiments'"], cwd=self.folder, capture_output=True, text=True,
                                 env={**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"})
        self.assertEqual(planned.returncode, 0, planned.stderr)
        linked = collections.Counter(link.rpartition("/")[2] for link in self.pages[page].links if link.endswith(".svg"))
        self.assertGreater(len(linked), 10)

    def test_statements(self):
        """A row for each, and published results lead to theirs."""
        with (ROOT / "experiments/papers/statements.csv").open(encoding="utf-8") as file:
            stated = list(csv.DictReader(line for line in file if not line.startswith("#")))
        page = self.folder / "docs/STATEMENTS.html"
        found, console = browser.returned(page, "return [...document.querySelectorAll('.published tbody tr')].map(row => row.cells[2].innerText);")
        self.assertEqual(console, [])
        self.assertEqual([" ".join(text.split()) for text in found], [" ".join(row["statement"].split()) for row in stated])
        linked = {link.partition("#s")[2] for link in self.pages[self.folder / "docs/PUBLISHED.html"].links if "STATEMENTS.html#s" in link}
        judged = {str(place) for place, row in enumerate(stated) if ": " in row["item"] and row["standing"] == "judged"}
        self.assertTrue(judged)
        self.assertEqual(judged - linked, set())

    def test_galleries(self):
        """Every measured figure, every example of a method, and every header for authors is on its page."""
        figures = {path.name for path in (ROOT / "results/measured/figures").glob("*.svg")}
        gallery = (self.folder / "docs/GALLERY.html").read_text(encoding="utf-8")
        self.assertEqual({name for name in figures if name not in gallery}, set())
        methods = self.pages[self.folder / "docs/METHODS.html"].places
        self.assertEqual({path.parent.name for path in (ROOT / "docs/examples").glob("*/*.cpp")} - methods, set())
        headers = self.pages[self.folder / "docs/HEADERS.html"].places
        inner = {"denormals", "entry", "export", "layout", "npy", "numpy_random"}
        named = {path.stem for path in (ROOT / "core/include/stiefel").glob("*.hpp")} - inner
        self.assertEqual({name for name in named if f"{name.replace('_', '-')}-hpp" not in headers}, set())

    def test_search(self):
        """It finds a page without a server."""
        search = self.folder / "search.html"
        page = search.with_name("searched.html")
        page.write_text(search.read_text(encoding="utf-8").replace("<head>", "<head><script>history.replaceState(null, '', '?q=householder')</script>", 1), encoding="utf-8")
        found, console = browser.returned(page, "return [...document.querySelectorAll('#search-results li a')].map(link => link.innerText);")
        page.unlink()
        self.assertEqual(console, [])
        self.assertIn("Papers", found)


if not browser.find():
    print("skipped: Chromium is not installed")
    sys.exit(77)
unittest.main(argv=[sys.argv[0]])
