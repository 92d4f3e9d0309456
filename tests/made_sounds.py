#!/usr/bin/python3
"""Sounds in place of recordings that are not distributed: noise, laid out as TIMIT, as NLTK's sample of it, or as a song.

usage: made_sounds.py FOLDER writes the sample to FOLDER/timit and the song to FOLDER/song.
"""
import os
import random
import struct
import sys
from pathlib import Path

CORE = """mdab0 mwbt0 felc0 mtas1 mwew0 fpas0 mjmp0 mlnt0 fpkt0 mlll0 mtls0 fjlm0 mbpm0 mklt0 fnlp0 mcmj0 mjdh0 fmgd0 mgrt0 mnjm0 fdhc0 mjln0
mpam0 fmld0""".split()
DEVELOPMENT = """faks0 fdac1 fjem0 mgwt0 mjar0 mmdb1 mmdm2 mpdf0 fcmh0 fkms0 mbdg0 mbwm0 mcsh0 fadg0 fdms0 fedw0 mgjf0 mglb0 mrtk0 mtaa0 mtdt0
mthc0 mwjg0 fnmr0 frew0 fsem0 mbns0 mmjr0 mdls0 mdlf0 mdvc0 mers0 fmah0 fdrw0 mrcs0 mrjm4 fcal1 mmwh0 fjsj0 majc0 mjsw0 mreb0 fgjd0 fjmg0
mroa0 mteb0 mjfc0 mrjr0 fmml0 mrws1""".split()


def wav(count, seed, rate=16000):
    """Noise of changing strength, 16 bit, one channel."""
    source = random.Random(seed)
    samples = [int(source.gauss(0, 1000 * (1 + (i // 400) % 5))) for i in range(count)]
    data = struct.pack(f"<{count}h", *samples)
    return struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVEfmt ", 16, 1, 1, rate, 2 * rate, 2, 16, b"data", len(data)) + data


def phones(count, seed):
    """Five phones of equal length."""
    labels = random.Random(seed).sample(["h#", "sh", "iy", "ao", "q", "ax-h", "tcl", "t"], 5)
    edges = [count * i // 5 for i in range(6)]
    return "".join(f"{start} {end} {label}\n" for start, end, label in zip(edges, edges[1:], labels))


def write_song(folder):
    folder.mkdir(parents=True)
    (folder / "loop_tabla.flac").write_bytes(wav(8000, 1, 44100))  # a WAV file: readers look at what is in it


def write_sample(folder):
    """Twelve speakers of four sentences, as NLTK's sample."""
    for i in range(12):
        speaker = folder / f"dr{i % 8 + 1}-{'fm'[i % 2]}aa{chr(97 + i)}0"
        speaker.mkdir(parents=True)
        for k, sentence in enumerate(("sa1", f"si{i + 1}", f"sx{i + 1}", f"sx{i + 101}")):
            count = 5000 + 397 * ((5 * i + k) % 7)
            (speaker / f"{sentence}.wav").write_bytes(wav(count, 10 * i + k))
            (speaker / f"{sentence}.phn").write_text(phones(count, 10 * i + k))


def write_whole(folder):
    """630 speakers of ten sentences, all of which are links to one short sound."""
    folder.mkdir(parents=True)
    sound, transcription = folder / "one.wav", folder / "one.phn"
    sound.write_bytes(wav(2000, 1))
    transcription.write_text(phones(2000, 1))
    others = [f"{'fm'[i % 3 > 0]}{chr(97 + i // 26)}{chr(97 + i % 26)}z9" for i in range(556)]
    for part, speakers in (("TRAIN", others[:462]), ("TEST", CORE + DEVELOPMENT + others[462:])):
        for i, name in enumerate(speakers):
            speaker = folder / part / f"DR{i % 8 + 1}" / name.upper()
            speaker.mkdir(parents=True)
            for k in range(10):
                sentence = f"{'SA' if k < 2 else 'SX'}{k + 1}"
                os.link(sound, speaker / f"{sentence}.WAV")
                os.link(transcription, speaker / f"{sentence}.PHN")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if not (folder / "timit").exists():
        write_sample(folder / "timit")
    if not (folder / "song").exists():
        write_song(folder / "song")
