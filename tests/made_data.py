"""Small data sets in place of those that are not distributed: blank images, lines of characters, short scales."""
import gzip
import itertools
import json
import struct


def blank_mnist(folder):
    for part, count in (("train", 11000), ("t10k", 100)):
        images = struct.pack(">4i", 0x803, count, 28, 28) + bytes(count * 784)
        labels = struct.pack(">2i", 0x801, count) + bytes(count)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, 1))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, 1))


def short_treebank(folder):
    """As many characters and, in the training text, words as the Penn Treebank."""
    symbols = "#$&'*-./0123456789N\\abcdefghijklmnopqrstuvwxyz"
    for part in ("train", "valid", "test"):
        (folder / f"ptb.{part}.txt").write_text(f" {symbols} \n <unk> {symbols[::-1]} \n" * 20)
    words = ["".join(letters) for letters in itertools.islice(itertools.product(symbols[-26:], repeat=3), 10000 - 4)]
    with open(folder / "ptb.train.txt", "a", encoding="utf-8") as train:
        train.writelines(f" {' '.join(words[i:i + 10])} \n" for i in range(0, len(words), 10))


def short_music(folder):
    scale = [[note, note + 12] for note in range(48, 60)]
    pieces = {split: [scale[i:] for i in range(8)] for split in ("train", "valid", "test")}
    for name in ("JSB_Chorales", "Piano_midi", "Nottingham", "MuseData"):
        (folder / f"{name}.json").write_text(json.dumps(pieces))
