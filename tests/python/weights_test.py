#!/usr/bin/python3
"""Exported networks are read as they were written, and each damage is reported in one sentence.

usage: weights_test.py PYTHON_FOLDER
"""
import json
import pathlib
import random
import re
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, sys.argv[1])
import exported
import stiefel


class Weights(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "model.safetensors"
        self.tensors, self.metadata = exported.network("elman", complex_map=True, kind="float32")

    def write(self):
        exported.write(self.path, self.tensors, self.metadata)
        return self.path.read_bytes()

    def refused(self, message, data=None):
        if data is not None:
            self.path.write_bytes(data)
        with self.assertRaisesRegex(ValueError, "^" + re.escape(str(self.path)) + r": [^\n]*" + message):
            stiefel.read_weights(self.path)

    def with_header(self, change):
        """The file after a change of its header."""
        data = self.write()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        header = change(header) or header
        text = json.dumps(header).encode() if not isinstance(header, bytes) else header
        return len(text).to_bytes(8, "little") + text + data[8 + length:]

    def test_same_numbers(self):
        self.write()
        weights = stiefel.read_weights(self.path)
        self.assertEqual(weights.metadata, self.metadata)
        self.assertEqual(set(weights.tensors), set(self.tensors))
        for name, values in self.tensors.items():
            np.testing.assert_array_equal(weights.tensors[name], values, name)
            self.assertEqual(weights.tensors[name].dtype, values.dtype)
        self.assertEqual(weights.config["model"]["cell"]["hidden"], 6)
        self.assertIsNone(weights.text("alphabet"))

    def test_every_truncation(self):
        data = self.write()
        for length in [*range(20), *range(20, len(data), 37), len(data) - 1]:
            self.refused("truncated", data[:length])

    def test_damaged_headers(self):
        data = self.write()
        self.refused("truncated", (2**63).to_bytes(8, "little") + data[8:])
        self.refused("header is not JSON", data[:8] + b"?" + data[9:])
        self.refused("header is not JSON", self.with_header(lambda _: b"[" * 100000))
        self.refused("header is not a JSON object", self.with_header(lambda _: [1]))
        self.refused("a name twice", self.with_header(lambda h: json.dumps(h).replace("readout.c", "readout.Y").encode()))
        self.refused("__metadata__ must be texts", self.with_header(lambda h: h["__metadata__"].update(step=3)))
        tensor = "readout.Y"
        for message, change in {
                "has no data_offsets": {"data_offsets": [0]},
                "has the wrong data_offsets": {"data_offsets": [0, 96]},
                "has the dtype BF16; networks have F32 or F64": {"dtype": "BF16"},
                r"has the dtype \['F32'\]; networks have F32 or F64": {"dtype": ["F32"]},
                "has no valid shape": {"shape": [-1, 2]},
                "has the wrong data_offsets .*": {"shape": [2**40, 2**40]}}.items():
            self.refused(message, self.with_header(lambda h, change=change: h[tensor].update(change)))
        self.refused("has no data_offsets", self.with_header(lambda h: h.update({tensor: 5})))
        for text in (b"a", b"abc"):
            self.refused(f"{len(text)} bytes after the last tensor", data + text)
        self.refused("header is not JSON", self.with_header(lambda _: b"\xff\xff"))
        self.refused("__metadata__ must be texts", self.with_header(lambda h: h.update(__metadata__=[1])))
        for shape in ([2.0, 12], ["2", 12], [True, 24], "2"):
            self.refused("has no valid shape", self.with_header(lambda h, shape=shape: h[tensor].update(shape=shape)))
        for offsets in (["0", "96"], [0.0, 96.0], "ab", [None, None]):
            self.refused("has no data_offsets", self.with_header(lambda h, offsets=offsets: h[tensor].update(data_offsets=offsets)))
        last = lambda h: max((values for name, values in h.items() if name != "__metadata__"), key=lambda values: values["data_offsets"])
        self.refused("has the wrong data_offsets", self.with_header(lambda h: last(h)["data_offsets"].append(last(h)["data_offsets"].pop() + 4)))
        self.tensors["readout.Y"] = self.tensors["readout.Y"].astype("float64")
        self.refused("different dtypes", self.write())

    def test_empty_tensors(self):
        self.tensors = {"a": np.zeros((0, 3), "float32"), **self.tensors, "z": np.zeros((0, 3), "float32")}
        self.write()
        self.assertEqual([stiefel.read_weights(self.path).tensors[name].shape for name in "az"], [(0, 3)] * 2)

    def test_other_files(self):
        for key, value, message in (("format", "other", "not a network"),
                                    *(("format_version", version, "reads 1: update it") for version in ("2", "0", "", "1.0")),
                                    *((key, "[", f"{key} of its __metadata__ is not JSON") for key in ("classes", "features", "normalisation")),
                                    ("config_json", "{", "config_json of its __metadata__ is not JSON"),
                                    ("config_json", "3", "no config_json"), ("alphabet", "[", "alphabet of its __metadata__"),
                                    ("target_names", "[" * 100000, "target_names of its __metadata__")):
            self.tensors, self.metadata = exported.network("elman")
            self.metadata[key] = value
            self.refused(message, self.write())

    def test_random_damage(self):
        """Whatever the damage is, the file is read or refused."""
        data, chance = self.write(), random.Random(1)
        for _ in range(1000):
            damaged = bytearray(data)
            for _ in range(chance.randint(1, 4)):
                damaged[chance.randrange(1200)] = chance.randrange(256)
            self.path.write_bytes(damaged)
            try:
                stiefel.read_weights(self.path)
            except ValueError as error:
                self.assertTrue(str(error).startswith(f"{self.path}: "), error)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
