"""`splitter demo`: an application survives a spot outage, in a control plane of its own."""

import typer


def register(app: typer.Typer) -> None:
    """Add the verb."""
