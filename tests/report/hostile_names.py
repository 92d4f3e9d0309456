"""Names that would be markup, scripts, other addresses or formulas if anything took them for more than text; and runs that have them in every
text that a report shows."""
import json
import os
import shutil

import h5py

TEXT = h5py.string_dtype("utf-8")
ENDS = ("", '"', "'>", '">', "]]>", "--></title></svg>", "</td></table></style></script>", "=1+1", "\u202e\x1b]0;x\x07", "\t&quot;\\\">\r\n")
CONTENTS = (
    '<meta http-equiv="refresh" content="0;url=//x.invalid">', "<script>document.documentElement.dataset.hit=1</script>",
    "<img src=x onerror=document.documentElement.dataset.hit=1>", "<svg onload=document.documentElement.dataset.hit=1>",
    ' onmouseover="document.documentElement.dataset.hit=1" x="', '<a href="javascript:alert(1)">', '<base href="//x.invalid">',
    '<iframe src="//x.invalid"></iframe>', '<form action="//x.invalid"><button autofocus>', "<style>*{display:none}</style>",
    '<link rel="stylesheet" href="//x.invalid">', "<!--", '<?xml-stylesheet href="//x.invalid"?>', "<![CDATA[", "{{constructor.constructor('x')()}}",
    "%3Cscript%3E&#60;script&#62;", "<!DOCTYPE x [<!ENTITY y 'z'>]>&y;", "<body onpageshow=document.documentElement.dataset.hit=1>",
    "<math><annotation-xml><p>", "\ud7ff\ufffe\u0085\u2028<template><textarea>")
NAMES = [end + first + end + second for end in ENDS for first, second in zip(CONTENTS[::2], CONTENTS[1::2])]


def of_link(name):
    """As a name in HDF5 or of a file."""
    return name.replace("/", "\\")


def rename_texts(file, name):
    text, shown = file["config/yaml"].asstr()[()], json.dumps(name)
    file["config/yaml"][()] = f"{shown}: {shown}\nnote: {shown}\n{text}"
    file.attrs.update({"title": name, "run_id": name})
    file["status"].attrs["message"] = name
    provenance = file["provenance"]
    for attribute in [*provenance.attrs, name]:
        provenance.attrs[attribute] = name
    for field in ("name", "kind", "version", "build_id"):
        provenance["plugins"][field][0] = name
    data = provenance.require_group("datasets")
    for field, values in {"name": [name], "path": [name], "sha256": [name], "bytes": [1]}.items():
        data.create_dataset(field, data=values, **({} if field == "bytes" else {"dtype": TEXT}))
    file["timing/phase"][0] = name
    for group, inside in (("spectrum", "singular_mean"), ("orthogonality", "defect_fro")):
        file.copy(f"{group}/recurrent", f"{group}/{of_link(name)}")
        file[f"{group}/{of_link(name)}/{inside}"].attrs["units"] = name
    file.copy("epochs/valid_loss", f"epochs/valid_{of_link(name)}")
    for metric in ("valid_loss", f"valid_{of_link(name)}"):
        file["epochs"][metric].attrs["units"] = name


def make(original, folder, names):
    """For each name a finished run, one in a state of that name, and one that cannot be read."""
    for number, name in enumerate(names):
        run, other, damaged = (folder / (f"{number}{last}" + of_link(name)) for last in "123")
        run.mkdir(parents=True)
        shutil.copy(original / "results.h5", run)
        with h5py.File(run / "results.h5", "r+", track_order=True) as file:
            rename_texts(file, name)
        shutil.copytree(run, other)
        with h5py.File(other / "results.h5", "r+") as file:
            file["config/yaml"][()] = file["config/yaml"].asstr()[()].replace("seed: 1\n", "seed: 2\n")
            file.attrs["state"] = file["status"].attrs["state"] = name
        damaged.mkdir()
        (damaged / "results.h5").write_bytes(os.urandom(100))
