"""Time until a new process can use limpet."""

import subprocess
import sys


class Import:
    """Python itself is part of the time; `pass` is what to subtract."""

    params = ("pass", "import limpet", "import limpet; limpet.Detector")
    param_names = ("code",)

    def time_import(self, code: str) -> None:
        """Run the code in a new process."""
        subprocess.run([sys.executable, "-c", code], check=True)
