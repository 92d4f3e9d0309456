#!/usr/bin/python3
"""The SDK id follows the code of the public headers, not their comments. usage: sdk_id_test.py CMAKE_FOLDER HEADERS"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPT, HEADERS = pathlib.Path(sys.argv[1]) / "StiefelSdkId.cmake", pathlib.Path(sys.argv[2])


def identity(folder):
    done = subprocess.run(["cmake", f"-DSTIEFEL_HEADERS={folder}", "-P", SCRIPT], capture_output=True, text=True, check=True)
    assert len(done.stderr.strip()) == 16, done.stderr
    return done.stderr


with tempfile.TemporaryDirectory() as scratch:
    copy = pathlib.Path(scratch) / "stiefel"
    shutil.copytree(HEADERS, copy)
    original = identity(HEADERS)
    assert identity(copy) == original
    header = copy / "schema.hpp"
    text = header.read_text(encoding="utf-8")
    header.write_text("// Another comment.\n\n" + text.replace("///", "//  With more words:"), encoding="utf-8")
    assert identity(copy) == original
    header.write_text(text.replace("Field& required();", "Field& required(bool = true);"), encoding="utf-8")
    assert identity(copy) != original
