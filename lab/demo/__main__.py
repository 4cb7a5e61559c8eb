"""`make demo`, or `python -m lab demo`: an application survives a spot outage, in a control plane of its own.

It reads the flags and hands them to `run_demo`; exit code 1 when a promise was broken or the demo
could not run, 130 after Ctrl-C.
"""

import sys
from pathlib import Path

import typer

from lab.demo import DemoOptions, run_demo
from lab.demo.screen import make_console
from lab.sandbox import SandboxError

_FAILED, _INTERRUPTED = 1, 130  # as every verb of splitter ends
_REFUSED = (
    "the demo takes spot nodes away, which it does in a sandbox of its own only, never in a cluster "
    "of yours. Leave --kubeconfig out. To try splitter there, see the README, 'On your own cluster'."
)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def demo(
    notice_s: float = typer.Option(30, min=0, help="Seconds from the notice to the loss of the spot nodes."),
    soak_s: float = typer.Option(
        5, min=1, help="Seconds for which spot must be ready before on-demand is lowered."
    ),
    grace_s: float = typer.Option(
        15, min=0, help="Seconds for which spot may be short before on-demand covers it."
    ),
    step_interval_s: float = typer.Option(3, min=0, help="Minimum seconds between two steps back to spot."),
    fast_s: float = typer.Option(
        3, min=0, help="Seconds a replica must be ready once spot has proven itself."
    ),
    release_s: float = typer.Option(
        5, min=0, help="Seconds for which doomed replicas stay after they are covered."
    ),
    keep: bool = typer.Option(False, "--keep", help="Leave everything running until Ctrl-C."),
    dashboard: bool = typer.Option(
        False, "--dashboard", help="Show the page of `splitter dashboard` while it runs."
    ),
    traffic: bool = typer.Option(
        False, "--traffic", help="Run real containers, send them requests, and count those that fail."
    ),
    recording: Path | None = typer.Option(
        None, dir_okay=False, writable=True, help="Write an animated picture of the run to this file (SVG)."
    ),
    kubeconfig: Path | None = typer.Option(
        None, help="Not allowed: the demo always uses a cluster of its own."
    ),
) -> None:
    """Show an application that survives the loss of spot.

    It takes 3 minutes, and needs no cluster.
    """
    if kubeconfig is not None:
        raise typer.BadParameter(_REFUSED, param_hint="--kubeconfig")
    if recording is not None and not recording.resolve().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {recording.parent}", param_hint="--recording")

    options = DemoOptions(
        notice_s=notice_s,
        soak_s=soak_s,
        grace_s=grace_s,
        step_interval_s=step_interval_s,
        fast_s=fast_s,
        release_s=release_s,
        keep=keep,
        dashboard=dashboard,
        traffic=traffic,
        recording=recording,
    )
    try:
        kept = run_demo(options, make_console())
    except SandboxError as fault:
        sys.stderr.write(f"demo: {fault}\n")
        raise typer.Exit(_FAILED) from None
    except KeyboardInterrupt:
        sys.stderr.write("\ndemo: ended by Ctrl-C\n")
        raise typer.Exit(_INTERRUPTED) from None
    if not kept:
        raise typer.Exit(_FAILED)


if __name__ == "__main__":
    app(prog_name="python -m lab demo")
