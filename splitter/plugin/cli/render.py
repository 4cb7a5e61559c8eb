"""`splitter render`: renders the twins of a manifest without a cluster, or of a workload in one.

What the controller would make of a workload with these annotations and settings, for reviews, for tests
of templates, and for those who want to know what they are in for. It shares the renderer with the
controller, so it says what the controller would say about a template that fails. A workload in a cluster
is `render_cluster`'s.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import typer

from splitter.core.desired.manifest import mapping_at
from splitter.core.division import base_replicas
from splitter.core.labels_annotations import twin_name
from splitter.core.labels_annotations.label import LabelState, source_label_state
from splitter.core.labels_annotations.policy import Policy, defaults_for
from splitter.core.mode import mode_of
from splitter.core.model import Mode, Rendered
from splitter.core.names import DEPLOYMENT, STATEFUL_SET
from splitter.core.replica import Pool
from splitter.core.template_sets import TemplateSet
from splitter.exits import Exit, faults_as_sentences
from splitter.plugin.cli.annotations import PolicyFault, policy_of, read_annotations
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.completion import workloads
from splitter.plugin.cli.dialect import written
from splitter.plugin.cli.manifests import Document, assert_complete, read_documents
from splitter.plugin.cli.render_cluster import describe_comparisons as diff_of
from splitter.plugin.cli.render_cluster import differences, twins_of
from splitter.plugin.cli.template_sets import TemplatesOption, check, read_templates
from splitter.render.bounded import BoundedRenderer
from splitter.settings.loading import load_settings

_KINDS = frozenset({DEPLOYMENT, STATEFUL_SET})


@asks_cluster(without=("everywhere", "selector"))
def render(
    workload: str | None = typer.Argument(
        None, help="A workload in a cluster: deploy/NAME or sts/NAME. Or use -f.", autocompletion=workloads
    ),
    file: str | None = typer.Option(
        None,
        "--filename",
        "-f",
        help="Read manifests from a file, or - for standard input. Needs no cluster.",
    ),
    pool: Pool | None = typer.Option(None, help="Render only the twin of this pool."),
    annotation: list[str] = typer.Option(
        [], "--annotation", help="KEY=VALUE; replaces an annotation of the manifest. May be repeated."
    ),
    templates: Path | None = TemplatesOption,
    diff: bool = typer.Option(False, "--diff", help="Show what would change in the existing twins."),
    *,
    cluster: Cluster,
) -> None:
    """Render the twins of Deployments and StatefulSets as YAML.

    It reads a file, without a cluster, or a workload in a cluster.

    Exit code 1 when a manifest, an annotation or a template is wrong; with --diff: 0 when nothing would
    change, 5 when something would.
    """
    if (workload is None) is (file is None):
        raise typer.BadParameter("name either a workload, such as deploy/web, or a file with -f")
    if diff and workload is None:
        raise typer.BadParameter("--diff compares with a cluster: name a workload, such as deploy/web")
    pools = [pool] if pool else list(Pool)
    with faults_as_sentences("render"):
        over = read_annotations(annotation)
        if workload is None:
            text = asyncio.run(_of_file(str(file), pools, over, templates, cluster.settings_file))
            typer.echo(text, nl=False)
            return
        target = cluster.target(workload)
        asked = (target, cluster, templates, over)
        if not diff:
            rendered, shares = asyncio.run(twins_of(*asked))
            typer.echo("---\n".join(_text(rendered[pool], shares, pool) for pool in pools), nl=False)
            return
        differing = asyncio.run(differences(*asked))
    names = {twin_name(target.name or "", pool) for pool in pools}
    if text := diff_of([one for one in differing if one.name in names]):
        typer.echo(text)
        raise typer.Exit(Exit.DIFFERS)


async def _of_file(
    file: str, pools: list[Pool], over: dict[str, str], templates: Path | None, settings: Path | None
) -> str:
    """Return the twins, rendered within the controller's limits, so that a set is tried under them."""
    from splitter.assembly import renderer_of, rules_of

    twins, brought = read_templates(templates, load_settings(settings))
    defaults = rules_of(twins).defaults
    with closing(BoundedRenderer(renderer_of(twins, brought))) as renderer:
        await check(renderer, brought)
        name, text = _read(file)
        workloads = _workloads(read_documents(text, name), name)
        parts = [
            part
            for document in workloads
            for part in await _twins(document, name, over, defaults, renderer, pools, brought)
        ]
    if not parts:
        raise ValueError(f"{name} holds nothing that is split into twins")
    return "---\n".join(parts)


def _read(file: str) -> tuple[str, str]:
    """Return the name for messages, and the text."""
    try:
        if file == "-":
            return "standard input", sys.stdin.read()
        return file, Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as fault:
        raise ValueError(f"{file} is no text: {fault}") from fault


def _workloads(documents: list[Document], file: str) -> list[Document]:
    """Return the Deployments and StatefulSets; say on standard error what is left out.

    Raises ValueError when there is none.
    """
    workloads = []
    for document in documents:
        manifest = document.manifest
        if manifest.get("apiVersion") != "apps/v1" or manifest.get("kind") not in _KINDS:
            why = "only apps/v1 Deployments and StatefulSets are split"
        elif _is_ours(manifest):
            why = "it is a twin itself"
        else:
            workloads.append(document)
            continue
        sys.stderr.write(f"{file}, line {document.line}: {document.title} is skipped; {why}\n")
    if not workloads:
        raise ValueError(f"{file} holds no Deployment or StatefulSet of apps/v1; only these are split")
    return workloads


def _is_ours(manifest: dict[str, object]) -> bool:
    labels = mapping_at(mapping_at(manifest, "metadata"), "labels")
    return (
        source_label_state({str(key): str(value) for key, value in labels.items()}).state is LabelState.OURS
    )


async def _twins(
    document: Document,
    file: str,
    over: dict[str, str],
    defaults: Policy,
    renderer: BoundedRenderer,
    pools: list[Pool],
    brought: Mapping[str, TemplateSet],
) -> list[str]:
    metadata = _mapping(document, "metadata", file)
    spec = _mapping(document, "spec", file)
    if not isinstance(metadata.get("name"), str):
        where = f"{file}, line {document.line}"
        raise ValueError(f"{where}: metadata.name is missing; every workload has one")  # noqa: TRY004
    assert_complete(document, file)
    annotations = {**_annotations(document, metadata, file), **over}
    replicas = spec.get("replicas", 1)  # the API server's default
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        raise ValueError(f"{file}, line {document.line}: spec.replicas is {replicas!r}; it must be a number")
    defaults = defaults_for(str(document.manifest.get("kind")), defaults)
    policy = _policy(document, annotations, over, defaults, replicas, file)
    if mode_of(str(document.manifest.get("kind")), policy.mode) is Mode.PLACEMENT:
        sys.stderr.write(
            f"{file}, line {document.line}: {document.title} is skipped; it is split by placement, which"
            " makes no twins; to render those that it would have as such, add --annotation mode=twins\n"
        )
        return []
    if brought and policy.template_set not in brought:
        sys.stderr.write(
            f"{file}, line {document.line}: {document.title} uses the template set {policy.template_set};"
            f" to try the other, add --annotation template={next(iter(brought))}\n"
        )
    source = {**document.manifest, "metadata": {**metadata, "annotations": annotations}}
    on_demand = base_replicas(replicas, policy)
    shares = {Pool.ON_DEMAND: on_demand, Pool.SPOT: replicas - on_demand}
    size = len(json.dumps(source, default=str))
    return [_text(await renderer.render(source, pool, policy, size), shares, pool) for pool in pools]


def _text(rendered: Rendered, shares: Mapping[Pool, int], pool: Pool) -> str:
    return (
        f"# {shares[pool]} of {sum(shares.values())} replicas when all is well; splitter writes the number\n"
        + written(json.loads(rendered.manifest_json))
    )


def _policy(
    document: Document,
    annotations: dict[str, str],
    over: dict[str, str],
    defaults: Policy,
    replicas: int,
    file: str,
) -> Policy:
    """Return the policy; a sentence about the manifest's own annotation begins with its line."""

    def placed(sentence: str) -> str:
        named = next((key for key in (*over, *document.lines) if f": {key} is " in sentence), None)
        if named in over:
            return sentence
        return f"{file}, line {document.lines.get(str(named), document.line)}: {sentence}"

    try:
        policy, warnings = policy_of(annotations, defaults, replicas)
    except PolicyFault as fault:
        raise ValueError(" ".join(map(placed, fault.sentences))) from fault
    for warning in warnings:
        sys.stderr.write(f"{placed(warning)}\n")
    return policy


def _annotations(document: Document, metadata: dict[str, object], file: str) -> dict[str, str]:
    """Return the annotations; the API server takes texts only, and YAML has other ideas of `true`."""
    written = metadata.get("annotations") or {}
    if not isinstance(written, dict):
        raise ValueError(f"{file}, line {document.line}: metadata.annotations is no mapping")  # noqa: TRY004
    for key, value in written.items():
        if not isinstance(key, str) or not isinstance(value, str):
            line = document.lines.get(str(key), document.line)
            raise ValueError(  # noqa: TRY004
                f"{file}, line {line}: the annotation {key} is no text but {json.dumps(value, default=str)};"
                " put the value in quotes"
            )
    return {str(key): str(value) for key, value in written.items()}


def _mapping(document: Document, key: str, file: str) -> dict[str, object]:
    value = document.manifest.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"{file}, line {document.line}: {document.title} has no {key}")  # noqa: TRY004
    return value
