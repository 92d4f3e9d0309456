"""The process of a peer of tools/bench/run: it takes steps when asked to, and prints how long each took."""
import ctypes
import json
import sys
import time


def repeat(step, seconds):
    """Seconds of each step, at least three after one to warm up."""
    step()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < seconds and len(times) < 1000):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return times


def give_memory_back():
    """What malloc keeps after a step is missing to the other processes."""
    ctypes.CDLL(None).malloc_trim(0)


def serve(step, describe):
    """Prints describe() as JSON, then the seconds of steps for each line of standard input, which says for how long to measure."""
    for _ in range(3):
        step()
    give_memory_back()
    print(json.dumps(describe()), flush=True)
    for line in sys.stdin:
        times = repeat(step, float(line))
        give_memory_back()
        print(json.dumps({"seconds": times}), flush=True)
