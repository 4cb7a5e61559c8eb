"""Template sets: what a ConfigMap says, and what is said about one that is wrong."""

import pytest

from splitter.core.template_sets import MAX_TEMPLATE_BYTES, TemplateSet, from_config_map

TEXTS = {"deployment.on-demand.yaml.j2": "a", "deployment.spot.yaml.j2": "b"}
LABELS = {"splitter.io/template-set": "enabled"}


def read(
    *,
    name: str = "small",
    labels: dict[str, str] | None = None,
    namespaces: str | None = "shop",
    binary_keys: tuple[str, ...] = (),
    texts: dict[str, str | None] | None = None,
) -> TemplateSet:
    """Return what a ConfigMap in splitter-system is read as; a text that is None is left out."""
    values = {**TEXTS, **(texts or {})}
    return from_config_map(
        "splitter-system",
        name,
        labels=LABELS if labels is None else labels,
        annotations={} if namespaces is None else {"splitter.io/namespaces": namespaces},
        texts={key: text for key, text in values.items() if text is not None},
        binary_keys=binary_keys,
    )


class TestConfigMap:
    def test_files(self) -> None:
        """Its keys are the files of a set, with dots for the slashes that a key may not have."""
        content = read()
        assert content.files == {"deployment/on-demand.yaml.j2": "a", "deployment/spot.yaml.j2": "b"}
        assert content.faults == ()
        assert content.where("deployment/spot.yaml.j2") == (
            "ConfigMap splitter-system/small, deployment.spot.yaml.j2"
        )

    @pytest.mark.parametrize(
        ("namespaces", "may", "may_not"),
        [
            (None, [], ["shop", "splitter-system"]),
            ("", [], ["shop"]),
            ("shop", ["shop"], ["shop-2", "ashop", "sho"]),
            ("shop, team-*,", ["shop", "team-a", "team-"], ["team", "shop-2"]),
            ("*-dev", ["a-dev"], ["dev", "a-dev-b"]),
            ("*", ["shop", "kube-system"], []),
        ],
    )
    def test_who_may_use_it(self, namespaces: str | None, may: list[str], may_not: list[str]) -> None:
        """The namespaces that its annotation names; without one, nobody."""
        content = read(namespaces=namespaces)
        assert content.faults == ()
        assert all(content.serves(namespace) for namespace in may)
        assert not any(content.serves(namespace) for namespace in may_not)


class TestFaults:
    @pytest.mark.parametrize(
        ("template_set", "fault"),
        [
            (read(labels={"splitter.io/template-set": "yes"}), 'the label splitter.io/template-set is "yes"'),
            (read(name="small.v2"), "its name is that of the set, and must be the name of a template set"),
            (read(namespaces="Shop"), 'the annotation splitter.io/namespaces holds "Shop", which names no'),
            (read(namespaces="shop other"), 'holds "shop other", which names no namespace'),
            (read(namespaces="[a-z]*"), 'holds "[a-z]*", which names no namespace'),
            (
                read(texts={"deployment.sport.yaml.j2": ""}),
                '"deployment.sport.yaml.j2" is no template\'s; did you mean "deployment.spot.yaml.j2"?',
            ),
            (
                read(texts={"README.md": ""}),
                'the key "README.md" is no template\'s; remove it; there are deployment.on-demand.yaml.j2',
            ),
            (
                read(texts={"deployment.spot.yaml.j2": None}),
                'the key "deployment.spot.yaml.j2" is missing; start from a copy of the default one',
            ),
            (
                read(texts={"deployment.spot.yaml.j2": None}, binary_keys=("deployment.spot.yaml.j2",)),
                'the key "deployment.spot.yaml.j2" is binary data; a template is text in UTF-8, under `data`',
            ),
            (
                read(texts={"deployment.spot.yaml.j2": "ä" * (MAX_TEMPLATE_BYTES // 2 + 1)}),
                'the key "deployment.spot.yaml.j2" has 32770 bytes; at most 32768 are allowed',
            ),
        ],
    )
    def test_said(self, template_set: TemplateSet, fault: str) -> None:
        """Each is one sentence with what to write instead."""
        (said,) = template_set.faults
        assert fault in said

    def test_all_of_them(self) -> None:
        """Two faults are two sentences: nobody mends twice."""
        assert len(read(namespaces="A,B", texts={"x.j2": ""}).faults) == 3
