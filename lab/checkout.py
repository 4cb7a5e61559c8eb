"""Where the checkout is: manifests and examples to apply, code to start, results to write."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
MANIFESTS: Final = ROOT / "manifests"
BENCHMARKS: Final = ROOT / "benchmarks"
