"""What set-up frees in its environment: copies become one file, what only C++ programs use is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "requirements" / "slim.py"


def test_copies_become_links_and_headers_go(tmp_path):
    packages = tmp_path / "lib" / "site-packages"
    (packages / "casadi" / "include").mkdir(parents=True)
    (packages / "casadi" / "include" / "casadi.hpp").write_text("header")
    (packages / "casadi" / "libuno.a").write_text("archive")
    library, other = b"a" * 10_000, b"b" * 10_000
    for name, content in (("lib.so", library), ("lib.so.1", library), ("lib.so.1.2", library), ("other.so", other)):
        (packages / "casadi" / name).write_bytes(content)
    for _ in range(2):  # again on what is slim already
        subprocess.run([sys.executable, SCRIPT, tmp_path], check=True)
        left = {path.name: path for path in (packages / "casadi").iterdir()}
        assert sorted(left) == ["lib.so", "lib.so.1", "lib.so.1.2", "other.so"]
        assert [left[name].read_bytes() for name in sorted(left)] == [library] * 3 + [other]
        assert left["lib.so"].samefile(left["lib.so.1"])
        assert left["lib.so"].samefile(left["lib.so.1.2"])
        assert not left["lib.so"].samefile(left["other.so"])
