# SPDX-License-Identifier: GPL-2.0
"""The files of the program, from the bottom up."""

import glob
import os
import subprocess

from common import SANITIZED, SOURCES, Case


class Layers(Case):
    """Who calls whom."""

    def calls(self):
        """The files that each file calls, as the symbols of the objects tell."""
        subprocess.run(["make", "-s", "-C", SOURCES, "O=" + self.dir, "CFLAGS=-O1"], check=True,
                       capture_output=True)
        defines, wants = {}, {}
        for path in glob.glob(os.path.join(self.dir, "tracing/stackmap/*.o")):
            name = os.path.basename(path)[:-2]
            out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
            for *_, kind, symbol in map(str.split, out.splitlines()):
                if kind in "TDBRC":
                    defines[symbol] = name
                # Who complains is a variable of the main file.
                elif kind == "U" and symbol != "program":
                    wants.setdefault(name, set()).add(symbol)
        return {name: {defines[s] for s in symbols if s in defines} for name, symbols in
                wants.items()}

    def test_no_circles(self):
        """No file calls one that calls it, on whatever way."""
        if SANITIZED:
            self.skipTest("the same files")
        calls = self.calls()
        self.assertIn("util", calls["map"])
        while calls:
            bottom = [name for name, others in calls.items() if not others & set(calls) - {name}]
            self.assertTrue(bottom, f"these call each other: {calls}")
            for name in bottom:
                del calls[name]
