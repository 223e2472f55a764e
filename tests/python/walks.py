# SPDX-License-Identifier: Apache-2.0
"""Random walks in Python, as tests/support/walks.hpp has them in C++, with the same variables.

for random in walks("fsspec", 200):
    ...  # a random.Random; what fails says which seed to walk again
"""
import os
import random
import time
from typing import Iterator


def walks(name: str, usual: int) -> Iterator[random.Random]:
    first = int(os.environ.get("DAELSTROM_WALK_SEED", 1))
    seconds = os.environ.get("DAELSTROM_WALK_SECONDS")
    if seconds is not None:
        usual = 1
    begun = time.monotonic()
    until = begun + float(seconds or 0)
    seed = first
    while seed < first + usual or time.monotonic() < until:
        print(f"{name}: DAELSTROM_WALK_SECONDS=0 DAELSTROM_WALK_SEED={seed}")
        yield random.Random(seed)
        seed += 1
    print(f"walks of {name}: {seed - first} in {time.monotonic() - begun:.1f} s")
