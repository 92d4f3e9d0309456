#!/usr/bin/python3
"""The report of real runs: every figure with its axes, units and legend, and the numbers of the result files.

usage: report_test.py STIEFEL [unittest options]
"""
import base64
import csv
import io
import math
import pathlib
import re
import shutil
import subprocess
import unittest
import zlib
import xml.etree.ElementTree as xml

import h5py
import numpy

import runs
from pages import PROGRAM, SVG, HOSTILE, Made, empty_folder, report, figures, read

GENERATED_FIGURES = {"waveform_1": ("time (ms)", "amplitude")}
# Figures with a line for each group, and of which tables they are.
CURVES = (("train_loss", "steps/step", "steps/loss"), ("valid_loss", "epochs/step", "epochs/valid_loss"), ("grad_norm", "steps/step", "steps/grad_norm"),
          ("defect_recurrent", "orthogonality/recurrent/snapshot", "orthogonality/recurrent/defect_fro"),
          ("singular_values_recurrent", "spectrum/recurrent/snapshot", "spectrum/recurrent/singular_mean"))
PROFILES = (("hidden_grad_norm_last", "gradient/t", "gradient/hidden_grad_norm"),)
SWEEP_FIGURES = {
    "train_loss": ("optimizer step", "loss, batch mean"), "valid_loss": ("optimizer step", "validation loss"),
    "valid_accuracy": ("optimizer step", "validation accuracy"), "wall_clock": ("wall time (s)", "validation loss"),
    "boxes": ("validation loss", None), "singular_values_recurrent": ("optimizer step", "singular value"),
    "defect_recurrent": ("optimizer step", "‖WᴴW − I‖, Frobenius norm"), "eigenvalues_1": ("real part", "imaginary part"),
    "grad_norm": ("optimizer step", "norm of the gradient, before clipping"), "hidden_grad_norm_first": ("time step t", "‖∂L/∂hₜ‖"),
    "hidden_grad_norm_last": ("time step t", "‖∂L/∂hₜ‖"), "gradient_map_1": ("optimizer step", "time step t"), "timing": ("wall time per step (ms)", None)}


def summary(html):
    """The rows of the summary table, by the titles of its columns."""
    table = xml.fromstring(re.search('<section id="summary">.*?(<table>.*?</table>)', html, re.S)[1])
    titles, *rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    return [dict(zip(titles, row)) for row in rows]


def drawing(figure):
    return figure.find(f"{SVG}svg")


def texts(element, kind):
    return ["".join(e.itertext()) for e in element.iter(f"{SVG}text") if e.get("class") == kind]


def data(figure):
    """The rows of the CSV link."""
    link = figure.find(".//a")
    assert link.get("href").startswith("data:text/csv;base64,")
    return list(csv.DictReader(io.StringIO(base64.b64decode(link.get("href").split(",")[1]).decode())))


def curve(figure, label):
    """Columns x, y, low, high of one series."""
    rows = [list(row.values())[1:] for row in data(figure) if row["series"] == label]
    return numpy.array([[float(v) if v else math.nan for v in row] for row in rows]).T


def drawn_points(figure, kind, index):
    """The points of the index-th path of a kind ("line", "points"), as the axes place them."""
    plot = drawing(figure).find(f"{SVG}svg[@class='plot']")
    line = [p for p in plot if re.fullmatch(kind + r" c\d", p.get("class", ""))][index]
    _, _, width, height = map(float, plot.get("viewBox").split())
    scales = []
    for name in "xy":
        begin, end, kind = drawing(figure).get(f"data-{name}").split()
        scales.append((float(begin), float(end), kind))
    points = []
    for px, py in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", line.get("d")):
        shares = float(px) / width, 1 - float(py) / height
        points.append([math.exp(math.log(b) + s * math.log(e / b)) if kind == "log" else b + s * (e - b) for s, (b, e, kind) in zip(shares, scales)])
    return numpy.array(points), scales


def farthest(figure, kind, index, x, y):
    """The largest distance of a drawn point from that of the numbers x, y which has the nearest x, in shares of the axes; and how many there are."""
    points, scales = drawn_points(figure, kind, index)
    places = [(numpy.log(v) if log == "log" else v, numpy.log(p) if log == "log" else p, *((math.log(b), math.log(e)) if log == "log" else (b, e)))
              for v, p, (b, e, log) in zip((numpy.asarray(x, float), numpy.asarray(y, float)), points.T, scales)]
    rows = abs(places[0][0][None, :] - places[0][1][:, None]).argmin(axis=1)
    return max(abs(v[rows] - p).max() / (end - begin) for v, p, begin, end in places), len(points)


def pixels(image):
    """The palette indices of an embedded PNG, a row for each of its rows."""
    png = base64.b64decode(image.get("href").split(",")[1])
    width, height = (int.from_bytes(png[at:at + 4], "big") for at in (16, 20))
    begin = png.index(b"IDAT")
    packed = zlib.decompress(png[begin + 4:begin + 4 + int.from_bytes(png[begin - 4:begin], "big")])
    return numpy.frombuffer(packed, numpy.uint8).reshape(height, width + 1)[:, 1:]


def first_column(table):
    return table.reshape(len(table), -1)[:, 0]


def last_row(table):
    return table[-1]


class Report(Made, unittest.TestCase):

    def test_every_figure_has_axes_units_and_a_name(self):
        generated = figures((self.folder / "generation.html").read_text())
        for expected, found in ((SWEEP_FIGURES, self.figures), (GENERATED_FIGURES, generated)):
            for name, (x, y) in expected.items():
                with self.subTest(figure=name):
                    svg = drawing(found[name])
                    self.assertEqual(texts(svg, "label x"), [x])
                    self.assertEqual(texts(svg, "label y"), [y] if y else [])
                    self.assertEqual(svg.get("role"), "img")
                    named = [e for e in svg if e.get("id") in svg.get("aria-labelledby").split()]
                    self.assertEqual([e.tag for e in named], [f"{SVG}title", f"{SVG}desc"])
                    self.assertTrue(all(e.text for e in named))
                    ticks = [len(list(g)) for g in svg.iter(f"{SVG}g") if (g.get("class") or "").startswith("ticks")]
                    self.assertGreaterEqual(min(ticks), 2 if name != "timing" else 1)
                    self.assertGreater(len(data(found[name])), 0)
        self.assertEqual([list(g.itertext()) for g in drawing(self.figures["valid_loss"]).iter(f"{SVG}g") if g.get("class") == "legend"],
                         [["constant predictor"]])
        page = self.page.read_text()
        self.assertEqual(page.count('class="groups"'), 1)
        groups = xml.fromstring(re.search('<ul class="groups".*?</ul>', page, re.S)[0])
        self.assertEqual(["".join(entry.itertext()) for entry in groups], list(self.sweep))
        self.assertEqual([entry.find(".//path").get("class") for entry in groups], ["line c0", "line c1", "line c2"])

    def test_losses_of_several_groups_have_the_same_axes(self):
        training, validation = (drawing(self.figures[name]) for name in ("train_loss", "valid_loss"))
        for axis in ("data-x", "data-y"):
            self.assertEqual(training.get(axis), validation.get(axis))
        low, high, kind = training.get("data-y").split()
        values = numpy.concatenate([read(run, path) for folders in self.sweep.values() for run in folders for path in ("steps/loss", "epochs/valid_loss")])
        self.assertEqual(kind, "log")
        self.assertTrue(float(low) < values.min() and values.max() < float(high))
        first, last = map(float, training.get("data-x").split()[:2])
        self.assertTrue(-1 < first <= 1 and 60 <= last < 63, (first, last))

    def test_color_bars_read_from_the_bottom_to_the_top(self):
        svg = drawing(self.figures["gradient_map_1"])
        self.assertEqual(texts(svg, "label scale"), ["‖∂L/∂hₜ‖ (dimensionless)"])
        label, = (e for e in svg.iter(f"{SVG}text") if e.get("class") == "label scale")
        self.assertIn("rotate(-90)", label.get("transform"))
        ticks, = (g for g in svg.iter(f"{SVG}g") if g.get("class") == "ticks scale")
        heights = [float(text.get("y")) for text in ticks]
        self.assertEqual(heights, sorted(heights, reverse=True))
        image = list(svg.iter(f"{SVG}image"))[1]
        self.assertEqual(list(pixels(image)[:, 0]), list(range(254, -1, -1)))
        bar = base64.b64decode(image.get("href").split(",")[1])
        palette = bar.index(b"PLTE") + 4
        self.assertLess(sum(bar[palette:palette + 3]), sum(bar[palette + 3 * 254:palette + 3 * 255]))  # low values are dark

    def test_figures_of_one_run_share_a_seed(self):
        names = [f"{kind}_{number}" for kind in ("gradient_map", "eigenvalues") for number in (1, 2, 3)]
        for name in names:
            self.assertIn("Seed 1, one of 2; `stiefel report --seed` shows another.", "".join(self.figures[name].itertext()))
        with empty_folder() as folder:
            report(self.folder / "runs/three maps", "--seed", "2", folder=folder)
            chosen = figures((folder / "report.html").read_text())
            for name in names:
                self.assertIn("Seed 2, one of 2;", "".join(chosen[name].itertext()))
            cells = numpy.array([list(map(float, row.values())) for row in data(chosen["gradient_map_1"])])[:, 1:]
            norms = read(self.sweep["elman, householder"][1], "gradient/hidden_grad_norm")
            numpy.testing.assert_allclose(cells[:, [0, -1]].T, norms[[0, -1]], rtol=1e-4)
            said = report(self.folder / "runs/three maps", "--seed", "3", folder=folder, expected=2).stderr
            self.assertIn("--seed 3: no run has this seed; choose from 1, 2", said)
            report(*self.sweep["elman, householder"], self.sweep["lstm, dense"][1], folder=folder)
            found = figures((folder / "report.html").read_text())
            self.assertIn("Seed 2, one of 2;", "".join(found["gradient_map_1"].itertext()))
            self.assertIn("Seed 2.", "".join(found["gradient_map_2"].itertext()))

    def test_some_of_the_runs(self):
        with empty_folder() as folder:
            report(self.folder / "runs/three maps", "--where", "model.cell.plugin=elman", "--where", "seed=2", folder=folder)
            groups = xml.fromstring(re.search('<ul class="groups".*?</ul>', (folder / "report.html").read_text(), re.S)[0])
            self.assertEqual(["".join(entry.itertext()) for entry in groups], ["householder", "scaled_cayley"])
            self.assertEqual({run for run in re.findall(r"runs/three maps/[0-9a-f]{10}", (folder / "report.html").read_text())},
                             {f"runs/three maps/{self.sweep[name][1].name}" for name in ("elman, householder", "elman, scaled_cayley")})
            for where, said in (("model.cell.plugin=gru", "no run matches --where model.cell.plugin=gru"), ("model.cell.plugi=gru", "did you mean 'model.cell.plugin'?")):
                self.assertIn(said, report(self.folder / "runs/three maps", "--where", where, folder=folder, expected=2).stderr)

    def test_figures_show_32_groups_and_a_warning_says_so(self):
        with empty_folder() as folder:
            runs.make_copies(self.sweep["elman, householder"][0], folder / "many", 33)
            said = report("many", "--output", "report.html", folder=folder).stderr
            self.assertEqual(said, "warning: figures show 32 of 33 groups; choose with --where\n")
            html = (folder / "report.html").read_text()
            self.assertEqual(html.count("Figures show 32 of 33 groups: those with the best validation loss."), 1)
            groups = xml.fromstring(re.search('<ul class="groups".*?</ul>', html, re.S)[0])
            self.assertEqual(len({entry.find(".//path").get("class") for entry in groups}), 32)

    def test_each_key_of_a_crossed_study_has_its_own_means(self):
        """Hue, dash and panel; the same in all figures, and in the legend."""
        with empty_folder() as folder:
            runs.make_crossed(self.sweep["elman, householder"][0], folder / "crossed")
            report("crossed", "--figures", "figures", "--output", "report.html", folder=folder)
            html = (folder / "report.html").read_text()
            groups = xml.fromstring(re.search('<ul class="groups".*?</ul>', html, re.S)[0])
            keys = [("".join(entry.itertext()), entry.find(".//path").get("class")) for entry in groups]
            self.assertEqual(keys, [("hidden=8", "line c0"), ("hidden=12", "line c1"), ("hidden=16", "line c2"), ("reflections=2", "line guide"),
                                    ("reflections=4", "line guide d1")])
            svg = xml.parse(folder / "figures/valid_loss.svg").getroot()
            self.assertEqual(texts(svg, "label panel"), ["rate=0.001", "rate=0.01", "rate=0.1"])
            legend, = (g for g in svg.iter(f"{SVG}g") if g.get("class") == "legend")
            self.assertEqual([text.text for text in legend.iter(f"{SVG}text")], [label for label, _ in keys] + ["constant predictor"])
            lines = [f"line c{hue}{dash}" for hue in range(3) for dash in ("", " d1")]
            for plot in svg.findall(f"{SVG}svg[@class='plot']"):
                self.assertEqual([p.get("class") for p in plot if re.fullmatch(r"line c.*", p.get("class"))], lines)
            found = figures(html)
            rows = {row["series"]: row["series"].split(", ") for row in data(found["boxes"])}
            drawn = [e.get("class") for e in found["boxes"].iter() if (e.get("class") or "").startswith("points c")]
            self.assertEqual(drawn, [f"points c{['hidden=8', 'hidden=12', 'hidden=16'].index(parts[0])}" for parts in rows.values()])
            self.assertEqual([name for name in found["against_optimizer_rate"].get("data-lines").split(",") if name.startswith("line")], lines)
            self.assertFalse(drawing(found["against_optimizer_rate"]).findall(f".//*[@class='label panel']"))
            self.assertEqual(len(drawing(found["against_model_cell_hidden"]).findall(f"{SVG}svg[@class='plot']")), 3)
            points, _ = drawn_points(found["valid_loss"], "line", 0)  # of the first panel
            self.assertEqual(points[:, 0].round().tolist(), [20, 40, 60])

    def test_labels(self):
        with empty_folder() as folder:
            words = ("--label", "model.recurrent.plugin=householder:oRNN, m = 4", "--label", "model.cell.plugin=elman:plain <b>")
            report(self.folder / "runs/three maps", *words, folder=folder)
            html = (folder / "report.html").read_text()
            self.assertEqual([row["group"] for row in summary(html)], ["plain <b>, oRNN, m = 4", "plain <b>, scaled_cayley", "lstm, dense"])
            self.assertNotIn("<b>", html.replace("<b><", ""))
            runs.make_crossed(self.sweep["elman, householder"][0], folder / "crossed")
            report("crossed", "--label", "optimizer.rate=η", "--label", "optimizer.rate=1e-2:η is medium", "-o", "crossed.html", folder=folder)
            found = figures((folder / "crossed.html").read_text())
            self.assertEqual(texts(found["valid_loss"], "label panel"), ["η=0.001", "η is medium", "η=0.1"])
            self.assertEqual(texts(found["against_optimizer_rate"], "label x"), ["η"])
            for label, said in (("optimizer.rat=x", "--label optimizer.rat=x: the groups do not differ in optimizer.rat; did you mean 'optimizer.rate'?"),
                                ("train.batch=x", "the groups do not differ in train.batch; label one of model.cell.hidden, model.recurrent.reflections, optimizer.rate"),
                                ("optimizer.rate=0.02:x", "no run has optimizer.rate=0.02; choose from 0.001, 0.01, 0.1"),
                                ("optimizer.rate", "--label optimizer.rate: write KEY=TEXT, or KEY=VALUE:TEXT for a value"),
                                ("optimizer.rate=0.01:", "write KEY=TEXT, or KEY=VALUE:TEXT for a value")):
                self.assertIn(said, report("crossed", "--label", label, folder=folder, expected=2).stderr)

    def test_quartiles_of_five_runs_and_points_of_fewer(self):
        with empty_folder() as folder:
            runs.make_copies(self.sweep["elman, householder"][0], folder / "many", 5)
            copies = sorted((folder / "many").iterdir())
            for count in (4, 5):
                report(*copies[:count], "--by", "name", folder=folder)
                html = (folder / "report.html").read_text()
                found = figures(html)
                classes = {name: [e.get("class") for e in found[name].iter() if e.get("class")] for name in ("loss", "boxes")}
                caption = {name: "".join(found[name].find("figcaption").itertext()) for name in classes}
                losses = {path: numpy.array([read(copy, path) for copy in copies[:count]]) for path in ("steps/loss", "epochs/valid_loss")}
                self.assertFalse({"train_loss", "valid_loss"} & found.keys())
                for label, path, kind, color in (("training, batch mean", "steps/loss", "line run c0", "c0"), ("validation", "epochs/valid_loss", "points run c1", "c1")):
                    band = curve(found["loss"], label)
                    numpy.testing.assert_allclose(band[1], numpy.median(losses[path], axis=0), rtol=1e-8)
                    if count == 4:
                        self.assertEqual((classes["loss"].count(kind), classes["loss"].count(f"band {color}")), (4, 0))
                        self.assertIn("Line: median over seeds, up to where half of the runs have ended; points: each run; thin lines: each run.", caption["loss"])
                        for number, values in enumerate(losses[path]):
                            numpy.testing.assert_allclose(curve(found["loss"], f"{label}, run {number + 1}")[1], values, rtol=1e-8)
                    else:
                        self.assertEqual((classes["loss"].count(kind), classes["loss"].count(f"band {color}")), (0, 2))  # in the legend, too
                        self.assertIn("Line: median over seeds, up to where half of the runs have ended; band: 25 to 75%.", caption["loss"])
                        numpy.testing.assert_allclose(band[2:], numpy.quantile(losses[path], [0.25, 0.75], axis=0), rtol=1e-8)
                self.assertEqual((classes["boxes"].count("median c0"), classes["boxes"].count("box c0")), (1, int(count == 5)))
                self.assertEqual("(box)" in caption["boxes"], count == 5)
                self.assertEqual(len(data(found["boxes"])), count)
                self.assertEqual("25 to 75%" in summary(html)[0], count == 5)
                best = [self.at_best(copy, "valid_loss") for copy in copies[:count]]
                self.assertAlmostEqual(float(summary(html)[0]["validation loss"]), numpy.median(best), delta=1e-3)
                if count == 5:
                    quartiles = numpy.quantile(best, [0.25, 0.75])
                    numpy.testing.assert_allclose([float(text) for text in summary(html)[0]["25 to 75%"].split(" to ")], quartiles, atol=1e-3)
                    box, = (e.get("d") for e in found["boxes"].iter() if e.get("class") == "box c0")
                    begin, end, kind = drawing(found["boxes"]).get("data-x").split()
                    width = float(drawing(found["boxes"]).find(f"{SVG}svg[@class='plot']").get("viewBox").split()[2])
                    scale = math.log if kind == "log" else float
                    drawn = [width * (scale(v) - scale(float(begin))) / (scale(float(end)) - scale(float(begin))) for v in quartiles]
                    corners = [float(x) for x in re.findall(r"[MH]([\d.-]+)", box)]
                    numpy.testing.assert_allclose([min(corners), max(corners)], drawn, atol=0.2)
            with h5py.File(copies[4] / "results.h5", "r+") as file:
                file["epochs/valid_loss"][-1] = math.nan
            report(*copies, "--by", "name", folder=folder)
            band = curve(figures((folder / "report.html").read_text())["loss"], "validation")
            self.assertEqual(numpy.isnan(band).tolist(), [[False] * 3, [False] * 3, [False, False, True], [False, False, True]])
            for copy in copies[2:]:  # most runs have two evaluations; one is not finished, and its loss is no result
                with h5py.File(copy / "results.h5", "r+") as file:
                    for column in file["epochs"].values():
                        column.resize(2, axis=0)
            with h5py.File(copies[0] / "results.h5", "r+") as file:
                file.attrs["state"] = "diverged"
                file["epochs/valid_loss"][:] = 1e3
                file["epochs/seconds"][:] = 5000
            report(*copies, "--by", "name", folder=folder)
            html = (folder / "report.html").read_text()
            found = figures(html)
            self.assertEqual(curve(found["loss"], "validation")[0].tolist(), [20, 40])
            self.assertAlmostEqual(float(summary(html)[0]["validation loss"]), numpy.median([self.at_best(copy, "valid_loss") for copy in copies[1:]]), delta=1e-3)
            self.assertEqual((summary(html)[0]["runs"], len(data(found["boxes"]))), ("1 diverged, 4 finished", 4))
            report(copies[0], "-o", "slow.html", folder=folder)
            slow = figures((folder / "slow.html").read_text())["wall_clock"]
            self.assertEqual(texts(drawing(slow), "label x"), ["wall time (h)"])
            numpy.testing.assert_allclose(curve(slow, "three maps")[0], numpy.array([5000, 10000, 15000]) / 3600, rtol=1e-8)

    def test_runs_that_diverge_before_their_first_evaluation_leave_no_median(self):
        with empty_folder() as folder:
            runs.make_copies(self.sweep["elman, householder"][0], folder / "many", 3)
            first, *others = sorted((folder / "many").iterdir())
            for copy in others:
                with h5py.File(copy / "results.h5", "r+") as file:
                    file.attrs.update({"state": "diverged", "committed_step": 5})
                    for table in ("epochs", "spectrum/recurrent"):
                        for column in file[table].values():
                            if column.chunks:
                                column.resize(0, axis=0)
            report(first, *others, "--by", "name", folder=folder)
            found = figures((folder / "report.html").read_text())
            self.assertEqual({float(row["optimizer step"]) for row in data(found["singular_values_recurrent"])}, {0})
            self.assertEqual({row["series"] for row in data(found["wall_clock"])}, {"name=three maps, run 1"})
            self.assertEqual({row["series"] for row in data(found["loss"]) if row["series"].startswith("valid")}, {"validation, run 1"})
            numpy.testing.assert_allclose(curve(found["loss"], "validation, run 1")[1], read(first, "epochs/valid_loss"), rtol=1e-8)
            self.assertIn("there is no median, because at least half of the runs ended too early", "".join(found["wall_clock"].find("figcaption").itertext()))
            legend, = (group for group in drawing(found["wall_clock"]).iter(f"{SVG}g") if group.get("class") == "legend")
            self.assertIn("name=three maps, run 1", "".join(legend.itertext()))

    def test_zeros_on_a_logarithmic_axis(self):
        with empty_folder() as folder:
            runs.make_copies(self.sweep["elman, householder"][0], folder / "many", 2)
            said = "Zeros are not drawn: the axis is logarithmic."
            report("many", folder=folder)
            self.assertNotIn(said, (folder / "report.html").read_text())
            with h5py.File(next((folder / "many").iterdir()) / "results.h5", "r+") as file:
                file["orthogonality/recurrent/defect_fro"][:] = 0
            report("many", folder=folder)
            found = figures((folder / "report.html").read_text())
            self.assertEqual([name for name, figure in found.items() if said in "".join(figure.itertext())], ["defect_recurrent"])

    def test_best_is_that_of_the_direction_and_ids_are_groups(self):
        best = {}
        for metric in ("valid_accuracy", "epochs/valid_accuracy", "valid_loss", "epochs/valid_loss", "steps/grad_norm"):
            report("runs/three maps", "-o", "best.html", "--metric", metric, folder=self.folder)
            best[metric] = [row["best"] for row in summary((self.folder / "best.html").read_text())]
        for folders, by_name in zip(self.sweep.values(), best["valid_accuracy"]):
            self.assertAlmostEqual(float(by_name), max(self.at_best(folder, "valid_accuracy") for folder in folders), delta=1e-3)
        last = lambda metric: [read(folder, metric)[-1] for folder in list(self.sweep.values())[0]]
        self.assertAlmostEqual(float(best["epochs/valid_accuracy"][0]), max(last("epochs/valid_accuracy")), delta=1e-3)
        self.assertAlmostEqual(float(best["epochs/valid_loss"][0]), min(last("epochs/valid_loss")), delta=1e-3)
        self.assertEqual(set(best["steps/grad_norm"]), {"–"})
        report("runs/three maps", "runs/three maps/", "-o", "ids.html", "--by", "id", folder=self.folder)
        ids = {folder.name for folders in self.sweep.values() for folder in folders}
        self.assertEqual({row["group"].removeprefix("id=") for row in summary((self.folder / "ids.html").read_text())}, ids)

    def test_numbers_that_differ_in_their_last_bit_and_tables_that_are_incomplete(self):
        folder = pathlib.Path(shutil.copytree(self.sweep["elman, householder"][0], self.folder / "damaged/runs/one"))
        shutil.rmtree(folder / "checkpoints")  # the sum of what is changed here
        with h5py.File(folder / "results.h5", "r+") as file:
            losses = file["epochs/valid_loss"]
            losses[:] = numpy.where(numpy.arange(len(losses)) == 1, numpy.nextafter(1, 2), 1)
            file["provenance/segments/ended"][:] = 1e300
            del file["spectrum/recurrent/snapshot"]
        report("damaged", "-o", "damaged.html", folder=self.folder)
        self.assertLess(len((self.folder / "damaged.html").read_bytes()), 10**6)

    @staticmethod
    def at_best(folder, name):
        return read(folder, f"epochs/{name}")[read(folder, "epochs/is_best") == 1][-1]

    def test_summary_has_test_metrics_and_the_baseline(self):
        rows = summary(self.page.read_text())
        self.assertEqual([row["group"] for row in rows], list(self.sweep))
        for row, folders in zip(rows, self.sweep.values()):
            self.assertAlmostEqual(float(row["validation loss"]), numpy.median([self.at_best(folder, "valid_loss") for folder in folders]), delta=1e-3)
            with h5py.File(folders[0] / "results.h5") as file:
                self.assertEqual((row["runs"], row["steps"], row["parameters"]), ("2 finished", "60", str(file.attrs["parameters"])))
            seconds = [(read(folder, "provenance/segments/ended") - read(folder, "provenance/segments/started")).sum() for folder in folders]
            self.assertAlmostEqual(float(row["wall time"].removesuffix(" s")), numpy.median(seconds), delta=0.06 * numpy.median(seconds) + 0.5 * (max(seconds) >= 10))
            for title, path in (("test loss", "final/test_loss"), ("test accuracy", "final/test_accuracy")):
                self.assertAlmostEqual(float(row[title]), numpy.median([read(folder, path)[-1] for folder in folders]), delta=1e-3)
            with h5py.File(folders[0] / "results.h5") as file:
                self.assertAlmostEqual(float(row["baseline loss"]), file.attrs["baseline"], delta=1e-3)

    def test_curves_are_the_numbers_of_the_files(self):
        for name, x, y in CURVES:
            for index, label in enumerate(list(self.sweep)[:2]):
                with self.subTest(figure=name, group=label):
                    found = curve(self.figures[name], label)
                    values = numpy.array([first_column(read(folder, y)) for folder in self.sweep[label]])
                    numpy.testing.assert_array_equal(found[0], read(self.sweep[label][0], x))
                    numpy.testing.assert_allclose(found[1], numpy.median(values, axis=0), rtol=1e-8)
                    if name != "singular_values_recurrent":
                        self.assertTrue(numpy.isnan(found[2:]).all())
                        for number in (1, 2):
                            numpy.testing.assert_allclose(curve(self.figures[name], f"{label}, run {number}")[1], values[number - 1], rtol=1e-8)

    def test_times_are_those_of_the_files(self):
        phases = [phase.decode() for phase in read(self.sweep["elman, householder"][0], "timing/phase")]
        for label, folders in self.sweep.items():
            seconds = numpy.median([numpy.cumsum(read(folder, "epochs/seconds")) for folder in folders], axis=0)
            numpy.testing.assert_allclose(curve(self.figures["wall_clock"], label)[0], seconds, rtol=1e-8)
            taken = numpy.median([1000 * read(folder, "timing/seconds").sum(axis=0) / read(folder, "timing/step")[-1] for folder in folders], axis=0)
            rows = [row for row in data(self.figures["timing"]) if row["group"] == label]
            self.assertEqual([row["series"] for row in rows], [phase.replace("_", " ") for phase in phases])
            bars = {name: [float(row[name]) for row in rows] for name in ("wall time per step (ms)", "low", "high")}
            numpy.testing.assert_allclose(bars["wall time per step (ms)"], taken, rtol=1e-8)
            numpy.testing.assert_allclose(bars["high"], numpy.cumsum(taken), rtol=1e-8)
            numpy.testing.assert_allclose(bars["low"], numpy.cumsum(taken) - taken, rtol=1e-8, atol=1e-9)

    def test_last_gradients_are_those_of_finished_runs_at_one_step(self):
        with empty_folder() as folder:
            stopped, *finished = [runs.run(PROGRAM, folder, runs.ADDING.format(name="ends"), [f"seed={seed}", *words], code=75 if words else 0)
                                  for seed, words in ((1, ("--until", "13")), (2, ()), (3, ()))]
            self.assertEqual(list(read(stopped, "gradient/snapshot")), [1, 10])
            report("runs/ends", folder=folder)
            found = figures((folder / "report.html").read_text())
            last = [read(run, "gradient/hidden_grad_norm")[-1] for run in finished]
            label, = {row["series"].partition(", run ")[0] for row in data(found["hidden_grad_norm_last"])}
            numpy.testing.assert_allclose(curve(found["hidden_grad_norm_last"], label)[1], numpy.median(last, axis=0), rtol=1e-8)
            self.assertEqual({row["series"] for row in data(found["hidden_grad_norm_last"])}, {label, f"{label}, run 2", f"{label}, run 3"})
            self.assertIn("Line: median over seeds; points: each run. Snapshots of step 60; runs that end at other steps, and unfinished runs of groups with finished ones, are left out.",
                          "".join(found["hidden_grad_norm_last"].itertext()))
            first = [read(run, "gradient/hidden_grad_norm")[0] for run in (stopped, *finished)]
            numpy.testing.assert_allclose(curve(found["hidden_grad_norm_first"], label)[1], numpy.median(first, axis=0), rtol=1e-8)

    def test_heat_maps_begin_with_the_first_snapshot_and_end_with_the_last(self):
        with empty_folder() as folder:
            for steps, period, columns in ((21, 20, ["1", "20", "21"]), (250, 2, None)):
                run = runs.run(PROGRAM, folder, runs.ADDING.format(name=f"heat{steps}"), [f"train.steps={steps}", f"record.gradient_norms={period}"])
                report(run, folder=folder)
                figure = figures((folder / "report.html").read_text())["gradient_map_1"]
                cells, norms = data(figure), read(run, "gradient/hidden_grad_norm")
                shown = list(cells[0])[1:]
                self.assertEqual(shown, columns or shown)
                self.assertEqual((len(shown), shown[0], shown[-1]), (min(100, len(norms)), "1", str(steps)))
                values = numpy.array([[float(value) for value in row.values()][1:] for row in cells])
                numpy.testing.assert_allclose(values[:, [0, -1]].T, norms[[0, -1]], rtol=1e-4)
                drawn = pixels(list(drawing(figure).iter(f"{SVG}image"))[0])
                self.assertTrue(columns is None or (drawn[:, -1] != drawn[:, -2]).any())
                order = numpy.argsort(values[:, -1])
                self.assertTrue((numpy.diff(drawn[::-1][order, -1].astype(int)) >= 0).all())

    def test_lines_lie_where_the_numbers_of_the_files_are(self):
        for name, x, y in CURVES + PROFILES:
            for index, label in enumerate(list(self.sweep)[:2]):
                with self.subTest(figure=name, group=label):
                    folders = self.sweep[label]
                    values = numpy.median([last_row(read(f, y)) if name.startswith("hidden") else first_column(read(f, y)) for f in folders], axis=0)
                    distance, count = farthest(self.figures[name], "line", index, read(folders[0], x), values)
                    self.assertLess(distance, 1e-3)
                    self.assertEqual(count, len(values))
        for index, label in enumerate(list(self.sweep)[:2]):
            values = read(self.sweep[label][0], "spectrum/recurrent/eigenvalues")[-1]
            figure = self.figures[f"eigenvalues_{index + 1}"]
            points, _ = drawn_points(figure, "points", 1)
            numpy.testing.assert_allclose(points, numpy.stack([values.real, values.imag], axis=1), atol=2e-3)

    def test_long_lines_show_the_smallest_and_largest_values(self):
        page = self.folder / "long.html"
        self.assertLess(page.stat().st_size, 2e6)
        figure = figures(page.read_text())["loss"]
        text = "".join(figure.itertext())
        self.assertIn("Drawn: smallest and largest value of each pixel column.", text)
        self.assertIn("Data: smallest and largest of every 3759 points", text)
        middle = numpy.median(self.long_losses, axis=0)

        def kept(stretches):
            bounds = [k * 10**6 // stretches for k in range(stretches + 1)]
            return numpy.array(sorted({0, 10**6 - 1}.union(*({a + middle[a:b].argmin(), a + middle[a:b].argmax()} for a, b in zip(bounds, bounds[1:])))))

        points, _ = drawn_points(figure, "line", 0)
        numpy.testing.assert_allclose(points[:, 0], kept(430) + 1, atol=1e-3 * 10**6)
        numpy.testing.assert_allclose(points[:, 1], middle[kept(430)], rtol=0.01)
        rows = curve(figure, "training, batch mean")
        numpy.testing.assert_array_equal(rows[0], kept(266) + 1)
        numpy.testing.assert_allclose(rows[1], middle[kept(266)], rtol=1e-8)
        for number, losses in enumerate(self.long_losses):
            numpy.testing.assert_allclose(curve(figure, f"training, batch mean, run {number + 1}")[1].max(), losses.max(), rtol=1e-8)

    def test_long_names_are_whole(self):
        label = "a name of many words that goes on and on, " * 2 + "and has an end"
        with empty_folder() as folder:
            runs.run(PROGRAM, folder, runs.ADDING.format(name=label), ["train.steps=20"])
            runs.run(PROGRAM, folder, runs.ADDING.format(name="short"), ["train.steps=20", "seed=2"])
            report("runs", "--by", "name", "--figures", "figures", folder=folder)
            for name, kind in (("valid_loss", "legend"), ("boxes", "ticks y")):
                texts = [t for g in xml.parse(folder / "figures" / f"{name}.svg").iter(f"{SVG}g") if g.get("class") == kind for t in g.iter(f"{SVG}text")]
                whole = [t for t in texts if "".join(t.itertext()).endswith("and has an end")]
                self.assertEqual(len(whole), 1, name)
                self.assertGreater(len(list(whole[0])), 1)

    def test_spectra_profiles_and_waveforms(self):
        folder = self.sweep["elman, householder"][0]
        last = curve(self.figures["eigenvalues_1"], "recurrent, step 60")[:2]
        values = read(folder, "spectrum/recurrent/eigenvalues")[-1]
        numpy.testing.assert_allclose(last, [values.real, values.imag], atol=1e-8)
        bounds = curve(self.figures["singular_values_recurrent"], "elman, householder, max")
        numpy.testing.assert_allclose(bounds[1], numpy.median([read(f, "spectrum/recurrent/singular_max") for f in self.sweep["elman, householder"]], axis=0), rtol=1e-8)
        bounds = curve(self.figures["singular_values_forget"], "lstm, dense, min")
        lstm = {name: numpy.median([read(f, f"spectrum/forget/singular_{name}") for f in self.sweep["lstm, dense"]], axis=0) for name in ("min", "mean", "std")}
        numpy.testing.assert_allclose(bounds[1], lstm["min"], rtol=1e-8)
        band = curve(self.figures["singular_values_forget"], "lstm, dense")[1:]
        numpy.testing.assert_allclose(band, [lstm["mean"], lstm["mean"] - lstm["std"], lstm["mean"] + lstm["std"]], rtol=1e-8)
        for place, row in (("first", 0), ("last", -1)):
            profile = curve(self.figures[f"hidden_grad_norm_{place}"], "lstm, dense")
            norms = [read(f, "gradient/hidden_grad_norm")[row] for f in self.sweep["lstm, dense"]]
            numpy.testing.assert_allclose(profile[1], numpy.median(norms, axis=0), rtol=1e-8)
        cells = data(self.figures["gradient_map_1"])
        norms, snapshots = read(folder, "gradient/hidden_grad_norm"), read(folder, "gradient/snapshot")
        steps = numpy.array([float(step) for step in list(cells[0])[1:]])
        times, *values = numpy.array([[float(value) for value in row.values()] for row in cells]).T
        numpy.testing.assert_array_equal(times, read(folder, "gradient/t"))
        numpy.testing.assert_array_equal(steps, snapshots)
        numpy.testing.assert_allclose(values, norms, rtol=1e-4)
        image, = list(drawing(self.figures["gradient_map_1"]).iter(f"{SVG}image"))[:1]
        drawn = pixels(image)
        middles = steps[0] + (numpy.arange(drawn.shape[1]) + 0.5) / drawn.shape[1] * (steps[-1] - steps[0])
        nearest = abs(middles[:, None] - steps).argmin(axis=1)
        self.assertEqual(set(nearest), set(range(len(steps))))
        for column in range(len(steps)):
            shown = drawn[:, nearest == column]
            self.assertTrue((shown == shown[:, :1]).all(), column)
        scales = [texts(g, None) for n in (1, 2, 3) for g in drawing(self.figures[f"gradient_map_{n}"]).iter(f"{SVG}g") if g.get("class") == "ticks scale"]
        self.assertGreater(len(scales[0]), 1)
        self.assertEqual(scales, [scales[0]] * 3)
        generated = figures((self.folder / "generation.html").read_text())["waveform_1"]
        self.assertEqual({row["series"] for row in data(generated)}, {"true", "generated"})
        numpy.testing.assert_allclose(curve(generated, "true")[0], numpy.arange(60) / 16, rtol=1e-8)  # ms at 16 kHz
        self.assertAlmostEqual(abs(curve(generated, "true")[1]).max(), 1, delta=1e-3)

    def test_keys_on_an_axis(self):
        with empty_folder() as folder:
            made = runs.make_sweep(PROGRAM, folder, seeds=(1,), rates=(0.001, 0.01))
            report("runs", folder=folder)
            figure = figures((folder / "report.html").read_text())["against_optimizer_rate"]
            self.assertEqual(texts(drawing(figure), "label x"), ["optimizer.rate"])
            self.assertTrue(drawing(figure).get("data-x").endswith(" log"))
            self.assertNotIn("25 to 75%", "".join(figure.itertext()))
            self.assertFalse([e for e in figure.iter() if "band" in (e.get("class") or "")])
            for (label, rate), (run,) in made.items():
                with h5py.File(run / "results.h5") as file:
                    best = file["epochs/valid_loss"][()][numpy.flatnonzero(file["epochs/is_best"][()])[-1]]
                found = curve(figure, label)
                self.assertAlmostEqual(found[1][list(found[0]).index(rate)], best, delta=1e-8)
            report("runs", "--metric", "spectrum/recurrent/singular_max", "--by", "optimizer.rate", folder=folder)
            figure = figures((folder / "report.html").read_text())["boxes"]
            largest = sorted(read(run, "spectrum/recurrent/singular_max")[-1] for (label, rate), (run,) in made.items()
                             if rate == 0.001 and label.startswith("elman"))
            found = sorted(float(row["singular max"]) for row in data(figure) if row["series"] == "rate=0.001")
            numpy.testing.assert_allclose(found, largest, rtol=1e-8)
            changed = runs.run(PROGRAM, folder, runs.ADDING.format(name="three maps"), ["seed=2", "optimizer.rate=0.01", "train.steps=30", "--until", "20"], code=75)
            subprocess.run([PROGRAM, "resume", changed, "optimizer.rate=0.001", "--allow-change", "optimizer.rate", "--quiet"], check=True, capture_output=True)
            report("runs", folder=folder)
            self.assertIn("against_optimizer_rate", figures((folder / "report.html").read_text()))
            self.assertIn("did you mean", report("runs", "--metric", "valid_los", folder=folder, expected=2).stderr)
            self.assertIn("no finished run has a number", report("runs", "--against", "model.cell.plugin", folder=folder, expected=2).stderr)
            runs.run(PROGRAM, folder, runs.ADDING.format(name="other"), ["train.select=accuracy", "train.steps=20"])
            said = report("runs", folder=folder, expected=2).stderr
            self.assertIn("choose one with --metric, or name fewer folders", said)
            self.assertLessEqual(set(re.findall(r"--\w+", said)), set(re.findall(r"--\w+", report("--help", folder=folder).stdout)))

    def test_names_stay_text_and_damaged_files_are_a_row(self):
        with empty_folder() as folder:
            hostile = runs.run(PROGRAM, folder, runs.ADDING.format(name="'" + HOSTILE.replace("'", "''") + "'"), ["train.steps=20"])
            damaged = folder / "runs" / "damaged"
            damaged.mkdir()
            (damaged / "results.h5").write_bytes((hostile / "results.h5").read_bytes()[:3000])
            done = report("runs", "--title", HOSTILE, folder=folder, expected=6)
            html = (folder / "report.html").read_text()
            self.assertIn("damaged", done.stderr)
            self.assertIn("1 could not be read", html)
            self.assertNotIn("<img", html)
            self.assertIn("&lt;img src=x onerror=alert(1)&gt; &quot;&#39;&amp;", html)
            for figure in figures(html).values():
                self.assertNotIn("img", [e.tag.removeprefix(SVG) for e in figure.iter()])

    def test_names_of_maps_and_metrics_stay_out_of_markup(self):
        with empty_folder() as folder:
            run = runs.run(PROGRAM, folder, runs.ADDING.format(name="hostile"), ["train.steps=20", "record.orthogonality=10"])
            name = "a\"><meta http-equiv=\"refresh\" content=\"0;url=elsewhere\">"
            with h5py.File(run / "results.h5", "a") as file:
                for group in ("spectrum", "orthogonality"):
                    file.copy(f"{group}/recurrent", f"{group}/{name}")
                    file.copy(f"{group}/recurrent", f"{group}/RECURRENT")
                file.copy("epochs/valid_loss", f"epochs/valid_{name}")
            report("runs", "--figures", "figures", "--output", "report.html", folder=folder)
            html = (folder / "report.html").read_text()
            self.assertFalse("http-equiv=\"refresh\"" in html)
            found = re.findall(r'<figure id="([^"]*)"', html)
            self.assertEqual(len(found), len(set(found)))
            self.assertIn("defect_recurrent_2", found)
            for identity in re.findall(r'\bid="([^"]*)"', html):
                self.assertRegex(identity, r"^[a-z0-9_-]+$")
            for svg in (folder / "figures").glob("*.svg"):
                xml.fromstring(svg.read_text())

    def test_files_of_figures(self):
        report("runs/three maps", "--figures", "figures", folder=self.folder)
        names = {path.stem for path in (self.folder / "figures").iterdir()}
        self.assertEqual(names, set(self.figures))
        for name in names:
            svg = (self.folder / "figures" / f"{name}.svg").read_text()
            self.assertEqual(xml.fromstring(svg).tag, f"{SVG}svg")
            self.assertNotIn("var(", svg)
        self.assertFalse((self.folder / "report.html").exists())
        self.assertIn("--format must be", report("runs", "--figures", "f", "--format", "jpg", folder=self.folder, expected=2).stderr)

    def test_figures_for_papers(self):
        """Their width in mm, text of 8 pt, and lines that differ without their colors."""
        with empty_folder() as folder:
            for words, width in (((), 85), (("--width", "170"), 170)):
                report(self.folder / "runs/three maps", "--figures", "paper", "--style", "paper", *words, folder=folder)
                for path in (folder / "paper").glob("*.svg"):
                    svg = xml.parse(path).getroot()
                    self.assertEqual(svg.get("width"), f"{width:.2f}mm")
                    self.assertTrue(svg.get("style").startswith(f"width:{width:.2f}mm;"))  # the style sheet of the page does not count
                    units = [float(number) for number in svg.get("viewBox").split()]
                    self.assertAlmostEqual(12 * width / units[2], 8 / 72 * 25.4, delta=0.01)
                    self.assertAlmostEqual(float(svg.get("height").removesuffix("mm")) / width, units[3] / units[2], delta=0.01)
                    for frame in (e for e in svg.iter(f"{SVG}rect") if e.get("class") == "frame"):
                        self.assertLess(float(frame.get("x")) + float(frame.get("width")), units[2])
            svg = xml.parse(folder / "paper/valid_loss.svg").getroot()
            self.assertEqual([p.get("class") for p in svg.iter(f"{SVG}path") if re.match(r"line c", p.get("class"))][:3], ["line c0", "line c1 d1", "line c2 d2"])
            style = "".join(svg.find(f"{SVG}style").itertext())
            self.assertIn(".grid { fill: none; stroke: none;", style)
            color = {number: [int(text[i:i + 2], 16) / 255 for i in (0, 2, 4)] for number, text in re.findall(r"\.c(\d) { stroke: #(\w{6})", style)}
            light = {number: 116 * (sum(share * (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4) for share, v in
                                        zip((0.2126, 0.7152, 0.0722), rgb))) ** (1 / 3) - 16 for number, rgb in color.items()}
            for a, b, least in ((0, 1, 15), (0, 2, 15), (1, 2, 15), (0, 3, 10), *((i, i + 4, 20) for i in range(4))):  # i and i + 4 have the same dashes
                self.assertGreater(abs(light[str(a)] - light[str(b)]), least)
            runs.make_crossed(self.sweep["elman, householder"][0], folder / "crossed")
            report("crossed", "--figures", "crossed_paper", "--style", "paper", folder=folder)
            svg = xml.parse(folder / "crossed_paper/valid_loss.svg").getroot()
            self.assertEqual({p.get("class") for p in svg.iter(f"{SVG}path") if re.match(r"line c", p.get("class"))},
                             {f"line c{hue}{dash}" for hue in range(3) for dash in ("", " d1")})
            for words, said in ((("--style", "paper"), "--style needs --figures"), (("--figures", "f", "--style", "poster"), "--style must be paper"),
                                (("--figures", "f", "--width", "85"), "--width needs --style paper"), (("--figures", "f", "--format", "pgf"), "--format pgf needs --style paper"),
                                (("--figures", "f", "--style", "paper", "--width", "59"), "--width must be from 60 to 400 mm, not 59")):
                self.assertIn(said, report(self.folder / "runs/three maps", *words, folder=folder, expected=2).stderr)
                self.assertFalse((folder / "f").exists())

    @unittest.skipUnless(shutil.which("pdflatex"), "there is no pdflatex (Debian: texlive-latex-base, texlive-pictures)")
    def test_figures_that_latex_draws(self):
        with empty_folder() as folder:
            runs.make_crossed(self.sweep["elman, householder"][0], folder / "crossed")
            for name, of in (("sweep", self.folder / "runs/three maps"), ("sound", self.generation), ("crossed", folder / "crossed")):
                report(of, "--figures", name, "--style", "paper", "--format", "pgf", "--label", "optimizer.rate=η & 100 %", folder=folder) \
                    if name == "crossed" else report(of, "--figures", name, "--style", "paper", "--format", "pgf", folder=folder)
                pictures = sorted(path.stem for path in (folder / name).glob("*.pgf"))
                self.assertEqual(pictures, sorted(path.stem for path in (folder / name).glob("*.csv")))
                (folder / f"{name}.tex").write_text("\\documentclass{article}\\usepackage{pgfplots}\\pgfplotsset{compat=1.18}\\graphicspath{{" + name + "/}}\\begin{document}"
                                                    + "".join(f"\\setbox0\\hbox{{\\input{{{name}/{picture}.pgf}}}}\\message{{<{picture} \\the\\wd0>}}\\box0\\clearpage\n" for picture in pictures)
                                                    + "\\end{document}")
                done = subprocess.run(["pdflatex", "-halt-on-error", "-interaction=nonstopmode", name], cwd=folder, capture_output=True, text=True, errors="replace")
                self.assertEqual(done.returncode, 0, done.stdout[-3000:])
                widths = dict(re.findall(r"<(\w+)\s+([\d.]+)pt>", done.stdout.replace("\n", "")))
                self.assertEqual(set(widths), set(pictures))
                for picture, width in widths.items():
                    self.assertLess(float(width) * 25.4 / 72.27, 100, picture)
                self.assertNotIn("Missing character", done.stdout)
            curves = (folder / "sweep/valid_loss.pgf").read_text()
            points = re.findall(r"\(([\d.e-]+),([\d.e-]+)\)", re.search(r"\\addplot\[stiefel0, line width=1.1pt, forget plot\] coordinates \{(.*?)\}", curves)[1])
            values = numpy.median([read(run, "epochs/valid_loss") for run in self.sweep["elman, householder"]], axis=0)
            numpy.testing.assert_allclose(numpy.array(points, float), numpy.stack([[20, 40, 60], values], axis=1), rtol=1e-5)

    @unittest.skipUnless(shutil.which("rsvg-convert"), "there is no rsvg-convert (Debian: librsvg2-bin)")
    def test_figures_for_papers_and_slides(self):
        for kind, begin in (("pdf", b"%PDF-"), ("png", b"\x89PNG")):
            report(self.generation, "--figures", kind, "--format", kind, folder=self.folder)
            self.assertTrue((self.folder / kind / f"waveform_1.{kind}").read_bytes().startswith(begin))
            self.assertFalse(list((self.folder / kind).glob("*.svg")))
        report(self.generation, "--figures", "column", "--format", "pdf", "--style", "paper", folder=self.folder)
        width, = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ", (self.folder / "column/waveform_1.pdf").read_bytes())
        self.assertAlmostEqual(float(width), 85 * 72 / 25.4, delta=0.1)

    def test_many_runs(self):
        with empty_folder() as folder:
            runs.make_copies(self.sweep["elman, householder"][0], folder / "many", 250)
            report("many", folder=folder)
            page = folder / "report.html"
            self.assertLess(page.stat().st_size, 1.5e6)
            self.assertIn("250 runs in 50 groups", page.read_text())
            by_rate = {}
            for copy in (folder / "many").iterdir():
                by_rate.setdefault(f"{0.001 * (1 + int(copy.name) % 50):.3f}", []).append(self.at_best(copy, "valid_loss"))
            best = sorted(by_rate, key=lambda rate: numpy.median(by_rate[rate]))[:32]
            drawn = {row["series"].removeprefix("rate=") for row in data(figures(page.read_text())["boxes"])}
            self.assertEqual(drawn, set(best))

    def test_size(self):
        self.assertLess(self.page.stat().st_size, 2e6)

    def test_drawings_of_the_documents_are_xml(self):
        root = pathlib.Path(__file__).parents[2]
        drawings = [*root.glob("docs/*.svg"), *root.glob("results/measured/figures/*.svg")]
        self.assertGreater(len(drawings), 10)
        for drawing in drawings:
            self.assertEqual(xml.parse(drawing).getroot().tag, SVG + "svg", drawing)


if __name__ == "__main__":
    unittest.main()
