#!/usr/bin/python3
"""Figures of runs show what h5py finds in their files.

usage: plot_test.py PYTHON_FOLDER STIEFEL
"""
import os
import shutil
import subprocess
import sys
import unittest
import warnings

sys.path.insert(0, sys.argv[1])
try:
    import h5py
    import matplotlib
    import numpy as np
    matplotlib.use("Agg")
    from matplotlib import pyplot
    import stiefel
    from stiefel import plot
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from some_runs import Runs

PROGRAM = os.path.abspath(sys.argv[2])


class Plots(Runs):
    program = PROGRAM

    def tearDown(self):
        pyplot.close("all")

    def test_figures(self):
        curves = plot.learning_curves(self.folder)
        self.assertEqual(len(curves.lines), 3)
        epochs = stiefel.load(self.folder)
        np.testing.assert_array_equal(curves.lines[1].get_ydata(), epochs["valid_loss"][1])
        np.testing.assert_array_equal(curves.lines[1].get_xdata(), [5, 10])
        self.assertEqual((curves.get_xlabel(), curves.get_ylabel()), ("optimizer step", "valid loss"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            groups = plot.learning_curves([self.folder], "train_loss", by="optimizer.0.rate")
        losses = epochs["train_loss"][epochs["optimizer.0.rate"] == 0.001]
        band = groups.collections[0].get_paths()[0].get_extents()
        self.assertAlmostEqual(band.y1, float(losses.quantile(0.75, "run").max()), places=6)
        self.assertGreaterEqual(band.y0, float(losses.min()))
        self.assertEqual([line.get_label() for line in groups.lines], ["0.001", "0.002"])
        np.testing.assert_allclose(groups.lines[0].get_ydata(), epochs["train_loss"][epochs["optimizer.0.rate"] == 0.001].median("run"))
        with self.assertRaisesRegex(ValueError, "no column nothing; there are .*valid_loss"):
            plot.learning_curves(self.folder, "nothing")
        with self.assertRaisesRegex(ValueError, "no run has values of test_loss, which needs train.select_on: best_test"):
            plot.learning_curves(self.folder, "test_loss")
        with self.assertRaisesRegex(ValueError, "the runs do not differ in task.length"):
            plot.learning_curves(self.folder, by="task.length")
        with self.assertRaisesRegex(ValueError, "the runs do not differ in valid_loss; they differ in path, .*optimizer.0.rate"):
            plot.learning_curves(self.folder, by="valid_loss")
        self.assertEqual(len(plot.singular_values(self.paths[0]).lines), 8)
        values = plot.eigenvalues(self.paths[0]).lines[0]
        spectrum, norms = stiefel.open_run(self.paths[0], "spectrum/recurrent"), stiefel.open_run(self.paths[0], "gradient")
        np.testing.assert_array_equal(values.get_xdata() + 1j * values.get_ydata(), spectrum["eigenvalues"].values[-1])
        for line, column in zip(plot.singular_values(self.paths[0]).lines, spectrum["singular_values"].values.T):
            np.testing.assert_array_equal(line.get_xydata(), np.stack([spectrum["snapshot"], column], axis=1))
        heat = plot.gradients(self.paths[0].parent, "last_step_grad_norm")
        np.testing.assert_array_equal(heat.collections[0].get_array().compressed(), norms["last_step_grad_norm"].values[norms["last_step_grad_norm"].values > 0])
        self.assertEqual(heat.collections[0].get_array().size, stiefel.open_run(self.paths[0], "gradient")["hidden_grad_norm"].size)
        deep = next(self.copy().rglob("results.h5"))
        with h5py.File(deep, "a") as file:
            file.move("gradient", "layer")
            file.move("layer", "gradient/layers_0")
            file.copy("gradient/layers_0", "gradient/layers_1")
        with self.assertRaisesRegex(ValueError, f"{deep} has norms for each layer: choose one with layer=0 or 1"):
            plot.gradients(deep)

    def test_groups_of_curves(self):
        folder = self.copy()
        for keys in (["optimizer.0.rate=2e-3"], ["optimizer.0.rate=2e-3", "seed=2"], []):
            subprocess.run([PROGRAM, "run", self.folder / "first.yaml", "model.recurrent={plugin: householder, reflections: 3}", *keys, "--quiet",
                            "--threads", "1", "--output", folder], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        epochs = stiefel.load(folder)

        def curves(by):
            axes = plot.learning_curves(folder, by=by)
            return axes.get_legend().get_title().get_text(), {line.get_label(): line.get_ydata() for line in axes.lines}
        title, one = curves("model.recurrent.reflections")
        self.assertEqual((title, list(one)), ("model.recurrent.reflections", ["3", "(none)"]))
        cayley = epochs["valid_loss"][epochs["model.recurrent.plugin"] == "scaled_cayley"]
        self.assertEqual(cayley.sizes["run"], 3)
        np.testing.assert_allclose(one["(none)"], cayley.median("run"))
        self.assertEqual(list(curves(["model.recurrent.normalise_columns"])[1]), ["True", "(none)"])
        title, several = curves(["model.recurrent.reflections", "optimizer.0.rate"])
        self.assertEqual((title, list(several)), ("model.recurrent.reflections, optimizer.0.rate", ["3, 0.001", "3, 0.002", "(none), 0.001", "(none), 0.002"]))
        chosen = (epochs["model.recurrent.plugin"] == "householder") & (epochs["optimizer.0.rate"] == 0.002)
        np.testing.assert_allclose(several["3, 0.002"], epochs["valid_loss"][chosen].median("run"))
        self.assertEqual([plot._text(value) for value in (3.0, 1e30, 0.001)], ["3", "1e+30", "0.001"])  # pylint: disable=protected-access

    def test_bands_and_legends(self):
        """On a logarithmic axis a band has two ends, and legends are beside the curves."""
        folder = self.copy()
        for number, path in enumerate(sorted(folder.rglob("results.h5"))):
            with h5py.File(path, "a") as file:
                file["epochs/valid_loss"][:] = 10.0 ** (-3 * number)
            for seed in (11, 12):
                shutil.copytree(path.parent, path.parent.with_name(f"{number}{seed}"))
        for by, count in ((None, 9), ("optimizer.0.rate", 2)):
            axes = plot.learning_curves(folder, by=by)
            axes.figure.canvas.draw()
            legend, curves = axes.get_legend().get_window_extent(), axes.get_window_extent()
            self.assertEqual(len(axes.lines), count)
            self.assertGreaterEqual(legend.x0, curves.x1)
        for band in plot.learning_curves(folder, by="optimizer.0.rate").collections:
            self.assertGreater(band.get_paths()[0].get_extents().y0, 0)

    def test_arguments(self):
        folder = self.copy()
        path = min(folder.rglob("results.h5"))
        with h5py.File(path, "a") as file:
            file.move("gradient", "layer")
            file.move("layer", "gradient/layers_0")
            file.copy("gradient/layers_0", "gradient/layers_1")
            file["gradient/layers_1/hidden_grad_norm"][:] = 7
            file.copy("spectrum/recurrent", "spectrum/other")
            file["spectrum/other/singular_values"][:], file["spectrum/other/eigenvalues"][:] = 3, 0.5j
        heat = plot.gradients(path, layer=1)
        self.assertEqual(set(heat.collections[0].get_array().compressed()), {7})
        self.assertEqual(heat.get_xlim(), (-0.5, 11.5))
        self.assertIsInstance(heat.collections[0].norm, matplotlib.colors.LogNorm)
        self.assertEqual(plot.singular_values(path, "other").lines[0].get_ydata()[0], 3)
        self.assertEqual(plot.eigenvalues(path, "other").lines[0].get_ydata()[0], 0.5)
        first, snapshots = plot.eigenvalues(path, snapshot=0), stiefel.open_run(path, "spectrum/recurrent")
        np.testing.assert_array_equal(first.lines[0].get_xdata(), snapshots["eigenvalues"][0].values.real)
        self.assertEqual((first.get_title(), first.patches[0].get_radius(), first.get_aspect()),
                         (f"recurrent, step {snapshots['snapshot'][0].item()}", 1, 1))
        with h5py.File(path, "a") as file:
            del file["spectrum/other/eigenvalues"]
        with self.assertRaisesRegex(ValueError, "the map other has no eigenvalues: it is not square"):
            plot.eigenvalues(path, "other")
        for draw, words in ((plot.learning_curves, {}), (plot.singular_values, {}), (plot.eigenvalues, {}), (plot.gradients, {"layer": 0})):
            axes = pyplot.subplots()[1]
            self.assertIs(draw(folder if draw is plot.learning_curves else path, ax=axes, **words), axes)
        curves = plot.learning_curves(folder, "seconds")
        self.assertEqual((curves.get_ylabel(), curves.get_legend().get_title().get_text()), ("wall time since the row before (s)", "run"))
        self.assertEqual([line.get_label() for line in curves.lines], stiefel.load(folder)["id"].values.tolist())

    def test_runs_of_different_length(self):
        """The median is that of the runs that have been evaluated at a step, up to where half of them have ended."""
        folder = self.copy()
        longer = next(path for path in sorted(folder.rglob("results.h5")) if stiefel.runs(path)["optimizer.0.rate"][0] == 0.001)
        with h5py.File(longer, "a") as file:
            file["epochs/step"][:] = [5, 20]
        lines = plot.learning_curves(folder).lines
        self.assertEqual(sorted(tuple(line.get_xdata()) for line in lines), [(5, 10), (5, 10), (5, 20)])
        axes = plot.learning_curves(folder, by="optimizer.0.rate")
        np.testing.assert_array_equal(axes.lines[0].get_xdata(), [5, 10])
        values = stiefel.load(folder, along="step")["valid_loss"]
        values = values[values["optimizer.0.rate"] == 0.001]
        band = [tuple(point) for point in axes.collections[0].get_paths()[0].vertices]
        self.assertAlmostEqual(min(y for x, y in band if x == 5), float(values[:, 0].quantile(0.25)), places=12)
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), values.median("run").values[:2])
        self.assertNotIn(10, [x for x, _ in band])  # one run has no quartiles


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
