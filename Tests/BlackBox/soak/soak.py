# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""The soak: doord under mixed load for a long time, a fifth of it bad or cut. Its memory and descriptors must not grow.

    python3 Tests/BlackBox/soak/soak.py [MINUTES=30] [RATE=4000] [SEED=1]     RATE in requests a second

Prints a line a minute and a table of the four quarters; exit status 0 if the memory of the last quarter is within 1 MiB of the second's,
as many descriptors are open as at the start, and not one answer was wrong."""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import daemon  # noqa: E402

CONNECTIONS = 64
MIB = 1 << 20


def main():
    settings = {"MINUTES": "30", "RATE": "4000", "SEED": "1"} | dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    settings |= dict(zip(["MINUTES"], [word for word in sys.argv[1:] if "=" not in word]))
    seconds = float(settings["MINUTES"]) * 60
    with tempfile.TemporaryDirectory() as folder, open("/dev/null", "wb") as nowhere:
        client = pathlib.Path(folder) / "client"
        subprocess.run([shutil.which("cc") or "clang", "-O2", "-o", client, HERE / "client.c"], check=True)
        door = daemon.Door(folder, "--host", "127.0.0.1", stderr=nowhere)
        load = subprocess.Popen([client, str(door.port), str(seconds), settings["RATE"], str(CONNECTIONS), settings["SEED"]],
                                stdout=subprocess.PIPE, text=True)
        samples, cpu, last, minute = [], [door.cpu()], {}, time.monotonic() + 60
        quarters = [{"requests": 0} for _ in range(4)]
        try:
            for line in load.stdout:
                before, last = last, json.loads(line)
                samples.append((last["seconds"], door.rss()))
                quarter = min(3, int(last["seconds"] / seconds * 4))
                quarters[quarter]["requests"] += last["requests"] - before.get("requests", 0)
                quarters[quarter]["cpu"] = door.cpu()
                if time.monotonic() > minute:
                    minute += 60
                    print(f"{last['seconds'] / 60:5.1f} min  {last['requests']:>9} requests  {last['wrong']} wrong  "
                          f"RSS {samples[-1][1] / MIB:.2f} MiB", flush=True)
            load.wait()
            good = judge(door, seconds, samples, quarters, cpu[0], last)
        finally:
            load.kill()
            load.wait()
            if door.running():
                door.process.kill()
                door.process.wait()
    sys.exit(0 if good and load.returncode == 0 else 1)


def judge(door, seconds, samples, quarters, cpu, last):
    """Prints the tables and says whether all is well."""
    print(f"\n{'quarter':>8} {'requests':>10} {'CPU µs each':>12} {'RSS mean':>10} {'RSS max':>10}  MiB")
    for index, quarter in enumerate(quarters):
        resident = [rss / MIB for at, rss in samples if min(3, int(at / seconds * 4)) == index]
        quarter["rss"] = statistics.mean(resident)
        spent = quarter.get("cpu", cpu) - cpu
        cpu += spent
        print(f"{index + 1:>8} {quarter['requests']:>10} {spent / max(1, quarter['requests']) * 1e6:>12.1f} {quarter['rss']:>10.2f} "
              f"{max(resident):>10.2f}")
    print(f"\n{'kind':>28} {'requests':>10} {'wrong':>6}")
    for kind, (count, wrong) in last["kinds"].items():
        print(f"{kind:>28} {count:>10} {wrong:>6}")
    growth = quarters[3]["rss"] - quarters[1]["rss"]
    try:
        door.stop()
        end = "as many descriptors as at the start, exit status 0"
    except AssertionError as failure:
        end = f"FAILED: {failure}"
    share = last["bad"] / last["requests"]
    print(f"\n{last['requests']} requests, {share:.1%} bad or cut, {last['wrong']} wrong, {last['trouble']} not begun; "
          f"RSS {growth:+.2f} MiB from the second quarter to the last; {end}")
    return growth <= 1 and last["wrong"] == 0 and not end.startswith("FAILED") and share > 0.18


if __name__ == "__main__":
    main()
