"""What a person may choose about the demo, and the settings of splitter that follow from it.

`__main__` fills it in, `journey` prints and obeys it. Every waiting time of splitter is made shorter, or
the demo would take an hour; nothing else about splitter is different from production.
"""

from dataclasses import dataclass
from pathlib import Path

# Pods of the sandbox take 2 to 4 s to become ready; with a second for splitter and the scheduler, a shorter
# notice than this is over before replacements can serve.
SHORTEST_USEFUL_NOTICE_S = 5.5


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The demo's own times, and splitter's, in seconds."""

    notice_s: float = 30.0
    """From the nodes' notice to their loss: the shortest that a cloud gives (Google, Azure; AWS 120)."""
    soak_s: float = 5.0
    grace_s: float = 15.0
    step_interval_s: float = 3.0
    fast_s: float = 3.0
    release_s: float = 5.0
    keep: bool = False
    """Leave everything running after the verdict, until Ctrl-C."""
    dashboard: bool = False
    """Show the page of `splitter dashboard` while it runs."""
    traffic: bool = False
    """Run real containers on real nodes, and count the requests that they answer."""
    recording: Path | None = None
    """Write a picture of the run there."""

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of `splitter run`, as environment variables.

        Ports 0: nothing is served, so that two demos can run side by side. Spot that stood for less than
        `calm` counts as flapping, and its soak doubles: here the whole life of the sandbox would.
        """
        return {
            "SPLITTER_SOAK_S": f"{self.soak_s:g}",
            "SPLITTER_GRACE_S": f"{self.grace_s:g}",
            "SPLITTER_TUNING_STEP_INTERVAL_S": f"{self.step_interval_s:g}",
            "SPLITTER_TUNING_FAST_S": f"{self.fast_s:g}",
            "SPLITTER_TUNING_RELEASE_S": f"{self.release_s:g}",
            "SPLITTER_TUNING_CALM_S": f"{self.soak_s:g}",
            "SPLITTER_HTTP_PORT": "0",
            "SPLITTER_METRICS_PORT": "0",
        }

    @property
    def notice_is_useful(self) -> bool:
        """Say whether replacements can be ready before the nodes go, so that no dip is promised."""
        return self.notice_s >= SHORTEST_USEFUL_NOTICE_S
