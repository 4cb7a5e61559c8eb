"""`python -m lab WHAT [OPTIONS]`: what `make` runs, by one name; without a name it prints the list."""

import runpy
import sys
from typing import Final

WHAT: Final = {
    "sandbox": ("lab.sandbox", "a control plane on loopback, until Ctrl-C"),
    "demo": ("lab.demo", "a split application survives the loss of all spot nodes, and is judged"),
    "compare": ("lab.bench.compare", "splitter beside plain Deployments that lose their spot nodes"),
    "traffic": ("lab.bench.traffic", "failed requests on real nodes, beside a plain Deployment"),
    "chaos": ("lab.chaos", "faults between splitter and the API server"),
    "soak": ("lab.soak", "a day of deploys, scaling, policies and a spot trace in 20 minutes"),
    "upgrade": ("lab.upgrade", "from another version to this one and back"),
    "compatibility": ("lab.compatibility", "tests with each Kubernetes and each Python that are promised"),
}


def main() -> None:
    """Run one of them with the rest of the arguments."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in WHAT:
        rows = [f"  {known:<14} {text}" for known, (_, text) in WHAT.items()]
        sys.stderr.write("\n".join(["usage: python -m lab WHAT [OPTIONS]", "", *rows, ""]))
        raise SystemExit(0 if name in {"-h", "--help"} else 2)
    del sys.argv[1]
    runpy.run_module(WHAT[name][0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
