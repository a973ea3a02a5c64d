"""What other processes may read of this one's environment.

A process shows the environment that it was started with for as long as it lives, in
`/proc/<pid>/environ`, whatever it changes later. What is secret there is blotted out in place.
"""

from __future__ import annotations

import ctypes

from sexpd import faults


def blot_out(prefix: str) -> None:
    """Overwrite the values of the variables that begin so where the process was given them.

    What Python has read of them stays.
    """
    if faults.on("keys-in-environ"):
        return
    pointers = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    number = 0
    while address := pointers[number]:
        name, _, value = ctypes.string_at(address).partition(b"=")
        if name.startswith(prefix.encode()):
            ctypes.memset(address + len(name) + 1, 0, len(value))
        number += 1
