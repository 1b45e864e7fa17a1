"""The input of test/soak.sh, and what becomes of it.

soak.py INPUT COUNT PIPE PID PEAKS   writes COUNT instances into a pipe, one in a hundred bad, and the
                                     peak memory of a process after 10 %, 50 % and 100 % of them
soak.py --count                      counts the records of stdin, and the errors among them
"""

import itertools
import json
import random
import sys
import time

BAD = ["{", "[]", "null", '{"id": 1}', '{"unknown": 1}', "\\", '"text"', '{"id": "' + "x" * 1000]


def lines(path, count):
    """The instances of a file in random order, over and over; the first of each hundred is bad."""
    with open(path, encoding="utf-8") as file:
        good = [line.strip() for line in file if line.strip()]
    rng = random.Random(1)
    for number in range(count):
        yield rng.choice(BAD if number % 100 == 0 else good)


def peak_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def feed(path, count, pipe, pid_path, peaks_path):
    peaks = []
    marks = {max(1, count // 10), max(1, count // 2), count}
    source = lines(path, count)
    with open(pipe, "w", encoding="utf-8") as file:
        done = 0
        for mark in sorted(marks):
            for line in itertools.islice(source, mark - done):
                file.write(line + "\n")
            done = mark
            file.flush()
            # What is in the pipe is less than a thousandth of a mark.
            time.sleep(0.5)
            with open(pid_path, encoding="ascii") as pid_file:
                peaks.append(peak_kib(int(pid_file.read())))
    with open(peaks_path, "w", encoding="ascii") as file:
        print(*peaks, file=file)


def count_records():
    records = errors = 0
    for line in sys.stdin:
        record = json.loads(line)
        records += 1
        errors += "error" in record
    print(records, errors)


if __name__ == "__main__":
    if sys.argv[1:] == ["--count"]:
        count_records()
    else:
        path, count, pipe, pid_path, peaks_path = sys.argv[1:]
        feed(path, int(count), pipe, pid_path, peaks_path)
