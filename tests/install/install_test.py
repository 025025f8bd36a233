#!/usr/bin/python3
"""Another project finds an installed Sluice: find_package(sluice), its targets, headers, files.

Installs a build to a temporary prefix, builds tests/install/consumer against it and runs that.
    tests/install/install_test.py --build build/release
"""

import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*command, **options):
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, **options)


def check_files(prefix):
    """What an operator gets besides the libraries."""
    expected = ["bin/sluice-server", "bin/sluice", "bin/sluice-journal", "bin/sluice-import",
                "share/bash-completion/completions/sluice", "share/zsh/site-functions/_sluice",
                "share/fish/vendor_completions.d/sluice.fish",
                "etc/sluice/sluice.conf", "share/doc/sluice/LICENSE",
                "share/sluice/prometheus-alerts.yml", "share/sluice/grafana-dashboard.json",
                "lib/systemd/system/sluice.service"]
    missing = [path for path in expected if not os.path.isfile(os.path.join(prefix, path))]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}")
    with open(os.path.join(prefix, "lib/systemd/system/sluice.service"), encoding="utf-8") as file:
        unit = file.read()
    for path in ("bin/sluice-server", "etc/sluice/sluice.conf"):
        if os.path.join(prefix, path) not in unit:
            raise SystemExit(f"the unit does not name {path} of this prefix")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="a complete build directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-install-") as scratch:
        prefix = os.path.join(scratch, "prefix")
        build = os.path.join(scratch, "build")
        run("cmake", "--install", options.build, "--prefix", prefix, stdout=subprocess.DEVNULL)
        check_files(prefix)
        run("cmake", "-S", os.path.join(ROOT, "tests/install/consumer"), "-B", build, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DEMBEDDING_DIR={ROOT}/tests/embedding")
        run("cmake", "--build", build, "--parallel", str(os.cpu_count()))
        for name in sorted(os.listdir(build)):
            path = os.path.join(build, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                run(path, cwd=scratch, timeout=120)
    print("an installed Sluice can be used")


if __name__ == "__main__":
    sys.exit(main())
