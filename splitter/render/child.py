"""The child process that renders untrusted templates: a request in, a manifest or a fault out.

`process` starts it and asks it one thing at a time. It has no environment, no arguments that tell anything,
no file but its two ends; before the first request it gives up opening files and connections and starting
processes, and takes a limit of memory, for good. A request brings its own limit of CPU. It ends when its
input does, and on Linux with its parent, however that ends. What it answers is data of whoever wrote the
template: `bounded` looks at it as such.

Each message is four bytes of length, then JSON. Nothing is imported here that knows a cluster.
"""

import ctypes
import json
import math
import os
import resource
import sys
import time
from typing import BinaryIO, Final

import jinja2.debug  # noqa: F401 - Jinja2 imports it where a template fails, when no file can be opened any more

from splitter.render.errors import TemplateError
from splitter.render.sandbox import MAX_BYTES, line_of
from splitter.render.templates import Templates

READY: Final = b'{"ready":true}'
LENGTH: Final = 4
# No sentence about a template is longer.
MAX_WHAT: Final = 2_000

_OUT_OF_MEMORY: Final = b'{"memory":null}'  # made before there is none
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_GIVEN_UP: Final = (
    resource.RLIMIT_CORE,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_NPROC,
)
# Renders in each way that a template can end, so that all that is imported on the way is.
_FIRST: Final = (
    "a: {{ 'b' | lower }}",
    "a: {{ b }}",
    "a: {{ source.b }}",
    "{{",
    "a: {{ 1 / 0 }}",
    "a: [",
    "\u00e4",
)


def main(parent: int, memory_bytes: int) -> None:
    """Answer requests until there are no more; `parent` is the process that asks."""
    _tether(parent)
    templates = Templates()
    for text in _FIRST:
        _answer(templates, {"text": text, "where": "", "kind": "", "variables": {"source": {}}})
    templates = Templates()
    _give_up(memory_bytes)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    _send(answers, READY)
    while head := requests.read(LENGTH):
        try:
            request = json.loads(requests.read(int.from_bytes(head)))
            _allow_cpu(request["cpu_s"])
            answer = _answer(templates, request)
        except MemoryError:
            answer = _OUT_OF_MEMORY
        _send(answers, answer)


def _tether(parent: int) -> None:
    """Have the kernel end this process with its parent, and end now if that has ended before."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent is gone")


def _give_up(memory_bytes: int) -> None:
    """Take limits that this process cannot raise again. Elsewhere than on Linux as many as there are."""
    for kind, value in ((resource.RLIMIT_AS, memory_bytes), *((kind, 0) for kind in _GIVEN_UP)):
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (least, least))
        except (OSError, ValueError):
            if sys.platform == "linux":
                raise


def _allow_cpu(seconds: int) -> None:
    """Have the kernel end this process when it has used so much more CPU."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    until = math.ceil(time.process_time()) + seconds
    resource.setrlimit(
        resource.RLIMIT_CPU, (until if hard == resource.RLIM_INFINITY else min(until, hard), hard)
    )


def _answer(templates: Templates, request: dict[str, object]) -> bytes:
    """Return the answer to a request: the manifest, nothing when a template is only read, or a fault."""
    text, where, kind = (str(request[key]) for key in ("text", "where", "kind"))
    variables = request["variables"]
    try:
        if not isinstance(variables, dict):
            templates.compiled(text, where, _fault)
            return _encoded({"manifest": None})
        return _manifest(templates.manifest(text, where, kind, variables, _fault))
    except TemplateError as fault:
        return _encoded({"fault": [fault.line, fault.what[:MAX_WHAT]]})
    except MemoryError as problem:
        return _encoded({"memory": line_of(problem)})


def _manifest(manifest: object) -> bytes:
    try:
        answer = _encoded({"manifest": manifest})
    except (ValueError, RecursionError) as problem:
        raise _fault(None, str(problem)) from problem
    if len(answer) > MAX_BYTES:
        raise _fault(None, f"the twin has {len(answer)} bytes; at most {MAX_BYTES} are allowed")
    return answer


def _fault(line: int | None, what: str) -> TemplateError:
    return TemplateError("", "", line, what)


def _encoded(answer: object) -> bytes:
    # JSON may hold half of a surrogate pair, which UTF-8 may not.
    return json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        errors="surrogatepass"
    )


def _send(answers: BinaryIO, answer: bytes) -> None:
    answers.write(len(answer).to_bytes(LENGTH) + answer)
    answers.flush()
