"""The program that a wheel has inside."""
import os
import sys

from ._library import WHEEL


def main():
    """Become the program, with the arguments of this process."""
    program = os.path.join(WHEEL, "bin", "starling")
    os.execv(program, [program] + sys.argv[1:])
