#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the tests of stackmap_dump. They need no kernel with a stack map.

tests/test.py [-v] [NAME...]: all, or those of test_NAME.py. A NAME may go on with a class and a
test, as in weights.OffCpu.test_clocks. STACKMAP_DUMP names the program (default: the one beside
the sources). The last line is "N passed, N failed, N skipped".
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True


def main():
    """Runs these tests. The last line has the counts."""
    names = [arg for arg in sys.argv[1:] if arg != "-v"] or sorted(
        f[5:-3] for f in os.listdir(sys.path[0]) if f.startswith("test_") and f.endswith(".py"))
    suite = unittest.defaultTestLoader.loadTestsFromNames("test_" + name for name in names)
    result = unittest.TextTestRunner(verbosity=1 + ("-v" in sys.argv)).run(suite)
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
