# SPDX-License-Identifier: Apache-2.0
"""How what the measuring scripts here have found is kept: a file of JSON with a list of runs, in which a run
takes the place of the one before it of the same kind, on the same machine, with the same OpenSSL, taken alike."""
import datetime
import json
import os
import pathlib
import re
import subprocess


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*:\s*(.*)$", text, re.M)
    return {"cpu": model[1] if model else os.uname().machine, "cores": os.cpu_count(),
            "gpus": [f"/dev/nvidia{n}" for n in range(16) if pathlib.Path(f"/dev/nvidia{n}").exists()]}


def openssl_version():
    told = subprocess.run(["openssl", "version"], check=True, capture_output=True, text=True).stdout
    return told.split()[1]


def begun():
    """What is said of a run beside its rows, taken when it begins: the load before it is others'."""
    return {"openssl": openssl_version(), "machine": machine(), "load": round(os.getloadavg()[0], 2),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}


def keep(path, kind, about, rows):
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    fresh = {"kind": kind, **about, "rows": rows}
    same = [n for n, run in enumerate(runs)
            if all(run.get(k) == fresh.get(k) for k in ("kind", "openssl", "machine", "at_once", "processes"))]
    if same:
        runs[same[0]] = fresh
    else:
        runs.append(fresh)
    path.write_text(json.dumps({"runs": runs}, indent=1) + "\n", encoding="utf-8")
