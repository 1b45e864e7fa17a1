"""Lets the peers' libraries use AVX-512 wherever the processor has it.

MKL uses it on Intel's processors only, and OpenBLAS on those that it knows by name: without this a peer computes with
half of what a recent AMD can do, which says nothing about either program. MKL asks a function of its own whether the
processor is Intel's, and one of that name that was loaded before takes its place; OpenBLAS reads a variable.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ASKED = "int mkl_serv_intel_cpu_true(void) { return 1; }\n"
# Set in the process that has them.
DONE = "COHORT_WIDE_LIBRARIES"


def processor_has_avx512():
    info = Path("/proc/cpuinfo")
    return info.exists() and "avx512f" in info.read_text(encoding="utf-8")


def restart_with_wide_vectors():
    """Starts this script once more, with what makes the libraries use AVX-512; nothing where there is none."""
    if DONE in os.environ or not processor_has_avx512():
        return
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "intel.so"
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(answer)]
        subprocess.run(command, input=ASKED, text=True, check=True)
        preloaded = " ".join(filter(None, (str(answer), os.environ.get("LD_PRELOAD"))))
        environment = {**os.environ, DONE: "1", "LD_PRELOAD": preloaded, "OPENBLAS_CORETYPE": "SkylakeX"}
        # The library has to be there as long as processes are started.
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)
