"""`splitter run`: the controller itself, in a pod or from a shell."""

import asyncio
import logging
import os
import sys
from pathlib import Path
from types import TracebackType

from splitter.settings import Settings
from splitter.settings.loading import load_settings

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def run(settings: Path | None) -> None:
    """Run the controller until SIGTERM or Ctrl-C, with this file of settings or none."""
    from splitter import operator

    loaded = configured(settings)
    try:
        import uvloop
    except ImportError:
        asyncio.run(operator.run(loaded))
    else:
        uvloop.run(operator.run(loaded))


def configured(settings: Path | None) -> Settings:
    """Load the settings of a process in the cluster, and write its log as they say."""
    loaded = load_settings(settings)
    if loaded.kubeconfig is None and (named := os.environ.get("KUBECONFIG")):
        loaded = loaded.model_copy(update={"kubeconfig": Path(named)})
    _log(loaded)
    return loaded


def _log(settings: Settings) -> None:
    """Write one line a record to standard error; kopf's own chatter only when something is wrong."""
    from splitter.report.log import handler

    handlers = [handler(settings.log_format)]
    logging.basicConfig(level=_LEVELS[settings.log_level], handlers=handlers, force=True)
    for name in ("kopf", "asyncio", "aiohttp", "kubernetes"):
        logging.getLogger(name).setLevel(max(logging.WARNING, _LEVELS[settings.log_level]))
    # Python's own would print what an exception quotes.
    sys.excepthook = _ends


def _ends(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Log what ends the process, as a bug in a reconcile is logged."""
    logging.getLogger("splitter").critical(
        "splitter ends, this is a bug of splitter's", exc_info=(kind, error, where)
    )
