"""What a test of this room has counted, for docs/performance.md: shown with `pytest -s`."""

from world.api import Api


def reported(api: Api, since_s: float, for_s: float) -> None:
    """Print the requests a second, by verb."""
    print(*(f"{verb} {count / for_s:.2f}/s" for verb, count in sorted(api.rates(since_s).items())))  # noqa: T201
