"""What is wrong with a workflow of the forge: rights, time, secrets, and words of strangers in a shell.

actionlint knows the forge's grammar better (CONTRIBUTING.md, Release). These are the rules that a workflow
may break and still work.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

Json = dict[Any, Any]
LONGEST_MIN = 120
# They run in the name of the repository on what a stranger wrote.
_FOREIGN = {"pull_request_target", "workflow_run", "issue_comment", "issues"}
_OUTSIDE = "${{ runner.temp }}/"
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_SECRET = re.compile(r"\bsecrets\b(?!\.GITHUB_TOKEN\b)")
_PINNED = re.compile(r"[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40}")


def triggers(workflow: Mapping[Any, Any]) -> set[str]:
    """Return what starts a workflow. YAML reads its key `on` as true."""
    result = workflow[True]
    return {result} if isinstance(result, str) else set(result)


def faults(text: str) -> list[str]:
    """Return a sentence for each rule that a workflow breaks."""
    workflow = yaml.safe_load(text)
    return [
        *_of_all(workflow, text),
        *(fault for name in workflow["jobs"] for fault in _of_job(name, workflow)),
    ]


def _of_all(workflow: Json, text: str) -> Iterator[str]:
    if workflow.get("permissions") != {}:
        yield "the workflow has rights by default: write 'permissions: {}' above the jobs"
    if result := triggers(workflow) & _FOREIGN:
        yield f"{min(result)} starts it"
    if any(_SECRET.search(expression) for expression in _EXPRESSION.findall(text)):
        yield "it reads a secret other than GITHUB_TOKEN"
    for used, comment in re.findall(r"^[ -]*uses: +(\S+)(.*)$", text, re.MULTILINE):
        if not used.startswith("./") and not _PINNED.fullmatch(used):
            yield f"{used} is not pinned by its commit"
        elif not used.startswith("./") and not re.fullmatch(r" # v[0-9]+\.[0-9]+\.[0-9]+", comment):
            yield f"{used} does not say its version"


def _of_job(name: str, workflow: Json) -> Iterator[str]:
    job = workflow["jobs"][name]
    rights = job.get("permissions")
    if not isinstance(rights, dict):
        yield f"{name} does not list its permissions"
    elif "pull_request" in triggers(workflow) and set(rights.values()) - {"read", "none"}:
        yield f"{name} may write for a pull request"
    if not 0 < job.get("timeout-minutes", 0) <= LONGEST_MIN:
        yield f"{name} has no timeout-minutes up to {LONGEST_MIN}"
    if job.get("secrets") is not None:
        yield f"{name} hands secrets on"
    for step in job.get("steps", ()):
        if "${{" in step.get("run", ""):
            yield f"{name} has an expression in a command: hand it over in env"
        if step.get("uses", "").startswith("actions/github-script@"):
            yield f"{name} has a script in a string"
    yield from _of_artifacts(name, job.get("steps", ()))


def _of_artifacts(name: str, steps: Iterable[Json]) -> Iterator[str]:
    """Yield what lets another job write into a checkout: its hooks run with the rights of this job."""
    used = [(step.get("uses", "").partition("@")[0], step.get("with", {})) for step in steps]
    if "actions/checkout" in dict(used):
        for action, given in used:
            if action == "actions/download-artifact" and not given.get("path", "").startswith(_OUTSIDE):
                yield f"{name} unpacks an artifact into its checkout: give it a path in runner.temp"


def _uses(workflow: Json) -> Iterator[str]:
    for job in workflow["jobs"].values():
        yield from (step["uses"] for step in job.get("steps", ()) if "uses" in step)


def pins(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the commits by which each action is pinned in some workflows."""
    values: dict[str, set[str]] = {}
    for text in texts.values():
        for used in _uses(yaml.safe_load(text)):
            action, _, commit = used.partition("@")
            values.setdefault(action, set()).add(commit)
    return values
