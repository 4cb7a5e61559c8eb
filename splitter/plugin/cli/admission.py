"""`splitter admission`: prints the admission policies that are generated from splitter's tables.

`manifests/admission` holds what it prints without settings (`make admission`). Whoever recognises spot nodes
by selectors of their own prints the placement policy with those settings. It asks no cluster.
"""

import textwrap
from collections.abc import Sequence
from enum import StrEnum, unique
from pathlib import Path
from typing import assert_never

import typer
import yaml

from splitter.admission import annotation_policies, notices_policy, placement_policy
from splitter.assembly import node_presets_of
from splitter.core.nodes.believed_events import BELIEVED
from splitter.plugin.cli.dialect import Dumper
from splitter.settings import Settings
from splitter.settings.loading import load_settings

_TITLES = {
    "annotations": """\
Says at `kubectl apply` what is wrong with a label or an annotation of splitter's, in the words in which the
controller would say it. Looks only at what changes; lets everything pass when it cannot judge.
Warnings only: kubectl patch validatingadmissionpolicybinding splitter-wrong-values --type=merge \\
  -p '{"spec":{"validationActions":["Warn"]}}'
""",
    "notices": """\
Optional. splitter believes some Events in the namespace `default`: that a node ends, that Karpenter gets no
machine. Without this policy it believes every account that may write Events there. With it, only accounts
that may patch the Node or NodeClaim may write, change or delete such an Event: termination handlers,
Karpenter, administrators. A kubelet may announce the end of its own Node. The policy ignores other Events.
kubectl apply -f manifests/admission/notices.yaml
""",
    "placement": """\
Splits StatefulSets in placement mode: each new pod of one gets its node affinity by its ordinal. Needs
Kubernetes 1.36 (MutatingAdmissionPolicy), so it is not a part of `kubectl apply -k manifests`.
A pod that it cannot place is born unsplit; none is ever refused.
""",
}


@unique
class Subject(StrEnum):
    """What policies are about."""

    ANNOTATIONS = "annotations"
    NOTICES = "notices"
    PLACEMENT = "placement"


def admission(
    subject: Subject = typer.Argument(help="Which policies to print."),
    settings: Path | None = typer.Option(None, "--settings", help="The controller's settings file."),
) -> None:
    """Print policies for the API server.

    They are made of splitter's tables; `placement` of the node selectors in the settings, too.
    """
    typer.echo(document(subject, policies(subject, load_settings(settings))), nl=False)


def policies(subject: Subject, settings: Settings) -> list[dict[str, object]]:
    """Return the policies and their bindings."""
    match subject:
        case Subject.ANNOTATIONS:
            return annotation_policies()
        case Subject.NOTICES:
            return notices_policy(BELIEVED)
        case Subject.PLACEMENT:
            return placement_policy(node_presets_of(settings))
        case _:
            assert_never(subject)


def document(subject: Subject, manifests: Sequence[dict[str, object]]) -> str:
    """Return manifests as one YAML file that says what it is and where it comes from."""
    title = f"{_TITLES[subject]}Made by `splitter admission {subject}`: do not edit."
    body = yaml.dump_all(manifests, Dumper=_Dumper, sort_keys=False, width=108, allow_unicode=True)
    return f"{textwrap.indent(title, '# ')}\n{body}"


class _Dumper(Dumper):
    """Writes texts of several lines as blocks, and no anchors."""

    def ignore_aliases(self, _data: object) -> bool:
        """Write out what occurs twice."""
        return True


def _block(dumper: Dumper, text: str) -> yaml.ScalarNode:
    if "\n" not in text:
        return dumper.represent_text(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")


_Dumper.add_representer(str, _block)
