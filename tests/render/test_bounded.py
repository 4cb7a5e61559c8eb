"""Rendering within limits: whatever a template set does, it holds nobody but its users."""

import asyncio
import json
import os
import resource
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from splitter.assembly import node_presets_of
from splitter.bundled import bundled_path
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Rendered
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.render import Renderer, TemplateError, TemplateSet, read_template_sets
from splitter.render import process as process_module
from splitter.render.bounded import BoundedRenderer
from splitter.render.errors import LimitError
from splitter.render.limits import MIB, SMALL_BYTES, Limits
from splitter.render.process import ChildProcess
from splitter.settings import Settings

HEAD = "apiVersion: apps/v1\nkind: Deployment\n"
GOOD = f"{HEAD}spec: {{template: {{{{ source.spec.template }}}}}}\n"
LIST = f"[{','.join('1' * 32)}]"
LOOPS = "".join(f"{{% for i{depth} in {LIST} %}}" for depth in range(8)) + "{% endfor %}" * 8
# One limit is within reach at a time, however slow and busy the machine is: seconds of CPU and of the clock
# are so many of its own. Memory is the same everywhere.
PATIENT = Limits(cpu_s=120, memory_bytes=96 * MIB, time_s=120.0)
FRUGAL = replace(PATIENT, cpu_s=1)
HURRIED = replace(PATIENT, time_s=0.2)
DEADLINE_S = 60.0


def source(env: int = 0, terms: int = 0, namespace: str = "shop") -> dict[str, object]:
    """Return a Deployment with so many variables, and terms of node affinity."""
    variables = [{"name": f"E{number}", "value": "v" * 20} for number in range(env)]
    needed = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * terms
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": needed}}
    pod = {"containers": [{"name": "web", "image": "web:1", "env": variables}]}
    affinity = {"affinity": {"nodeAffinity": required}} if terms else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace, "uid": "u-1"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {**pod, **affinity}},
        },
    }


class Sets:
    """The sets that travel with splitter, those that people bring, and a renderer of both."""

    def __init__(self, limits: Limits = PATIENT) -> None:
        self.by_name = read_template_sets(bundled_path("templates"))
        self.plain = Renderer(self.by_name, node_presets_of(Settings()))
        self.bounded = BoundedRenderer(self.plain, limits)

    def close(self) -> None:
        """End the child."""
        self.bounded.close()

    def bring(self, text: str, name: str = "own") -> TemplateSet:
        """Have a ConfigMap with this template for both twins."""
        files = {f"deployment/{pool.value}.yaml.j2": text for pool in Pool}
        self.by_name[name] = TemplateSet(name, files, config_map=f"home/{name}")
        return self.by_name[name]

    async def render(self, name: str = "own", values: dict[str, object] | None = None) -> Rendered:
        """Render the spot twin by a set."""
        values = values or source()
        size = len(json.dumps(values))
        return await self.bounded.render(values, Pool.SPOT, Policy(template_set=name), size)

    async def error(self, name: str = "own", values: dict[str, object] | None = None) -> TemplateError:
        """Return what is wrong with a rendering."""
        with pytest.raises(TemplateError) as caught:
            await self.render(name, values)
        assert caught.value.reason is Reason.TEMPLATE_INVALID
        return caught.value


@pytest.fixture
def sets() -> Iterator[Sets]:
    """Yield sets whose only limit is memory."""
    with closing(Sets()) as result:
        yield result


@pytest.fixture
def frugal() -> Iterator[Sets]:
    """Yield sets that are soon told that they take too much CPU."""
    with closing(Sets(FRUGAL)) as result:
        yield result


@pytest.fixture
def hurried() -> Iterator[Sets]:
    """Yield sets that are soon told that they take too long."""
    with closing(Sets(HURRIED)) as result:
        yield result


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """Return the list of what children are asked from now on."""
    collected: list[dict[str, object]] = []
    exchange = ChildProcess._exchange  # noqa: SLF001

    def noted(self: ChildProcess, request: bytes, time_s: float) -> bytes:
        collected.append(json.loads(request))
        return exchange(self, request, time_s)

    monkeypatch.setattr(ChildProcess, "_exchange", noted)
    return collected


def wait_gone(pid: int, handle: int) -> None:
    """Wait until a process has ended, by its handle; fails when it has not by the deadline."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    try:
        assert poll.poll(DEADLINE_S * 1000), f"process {pid} is still there"
    finally:
        os.close(handle)


class TestWhere:
    """What others write is rendered in the child, and what is large; the rest at once, as ever."""

    async def test_the_default_set_needs_no_child(self, sets: Sets) -> None:
        """A source of the usual size is rendered in this process."""
        rendered = await sets.render("default")
        assert rendered == sets.plain.render(source(), Pool.SPOT, Policy())
        assert sets.bounded.child_pid is None

    @pytest.mark.parametrize("values", [source(env=1_000), source(terms=100)], ids=["bytes", "terms"])
    async def test_a_large_source_does(self, sets: Sets, values: dict[str, object]) -> None:
        """By its bytes, or by what its node affinity is multiplied to; the twin is the same."""
        assert (len(json.dumps(values)) > SMALL_BYTES) is (values == source(env=1_000))
        assert await sets.render("default", values) == sets.plain.render(values, Pool.SPOT, Policy())
        assert sets.bounded.child_pid is not None

    async def test_a_set_that_is_brought_does(self, sets: Sets) -> None:
        """Even the default one under another name: the same twins, by one process for all."""
        spot = sets.by_name["default"].files["deployment/spot.yaml.j2"]
        sets.bring(spot)
        rendered = await sets.render()
        pid = sets.bounded.child_pid
        assert pid is not None
        assert rendered == sets.plain.render(source(), Pool.SPOT, Policy(template_set="own"))
        assert await sets.render() == rendered
        assert sets.bounded.child_pid == pid

    async def test_is_compiled_there_too(self, sets: Sets) -> None:
        """The first look at a set that has come, with what is wrong in each file."""
        assert await sets.bounded.faults(sets.bring(GOOD)) == ()
        faults = await sets.bounded.faults(sets.bring("a: 1\nb: {{ x | }}\n"))
        assert [fault.partition(": ")[0] for fault in faults] == [
            "ConfigMap home/own, deployment.on-demand.yaml.j2, line 2",
            "ConfigMap home/own, deployment.spot.yaml.j2, line 2",
        ]
        assert sets.bounded.child_pid is not None

    async def test_what_is_no_template_is_told_without(self, sets: Sets) -> None:
        """The form of a set, and a name that is taken."""
        faulty = TemplateSet("own", {}, config_map="home/own", faults=("the key is missing; write it",))
        (form,) = await sets.bounded.faults(faulty)
        assert form.startswith("ConfigMap home/own: the key is missing; write it. Mend it")
        (name,) = await sets.bounded.faults(TemplateSet("default", {}, config_map="home/default"))
        assert "a set of this name travels with splitter and is used instead; rename the ConfigMap" in name
        assert sets.bounded.child_pid is None


BOMBS = {
    "digits": ('{{ "%1000000000d" % 1 }}', "line 1: rendering it reached the limit of memory, 96 MiB"),
    "doubling": (
        '{% set a = "x" %}\n' + "{% set a = a ~ a %}" * 60 + HEAD,
        "line 2: rendering it reached the limit of memory, 96 MiB",
    ),
    "lists": (
        "{% set a = [1] %}" + "{% set a = a + a %}" * 40 + HEAD,
        "line 1: rendering it reached the limit of memory, 96 MiB",
    ),
    "output": (
        f"{HEAD}spec: {{a: [{'{{ source }},' * 2_000}]}}\n",
        "rendering it reached the limit of memory, 96 MiB",
    ),
    "numbers": (
        "{% set a = 9 %}" + "{% set a = a * a %}" * 40 + "{{ a }}",
        "yaml.j2: rendering it reached the limit of CPU, 1 s",
    ),
    "text": (
        f"{{% for a in {LIST} %}}{{% for b in {LIST} %}}{'#' * 2_000}{{% endfor %}}{{% endfor %}}",
        "the output has more than 1048576 characters",
    ),
    "nested blocks": ("{% if 1 %}" * 3_000 + "{% endif %}" * 3_000, "it is nested too deeply to be read"),
    "nested brackets": (f"{{{{ {'(' * 5_000}1{')' * 5_000} }}}}", "it is nested too deeply to be read"),
    # Ends the process: libyaml's depth is the C stack's. As many brackets take 1 s of CPU before that.
    "nested output": (
        "- " * 30_000 + "a",
        "yaml.j2: rendering it ended the process that did it, twice (no answer",
    ),
}


class TestBombs:
    """A set that takes too much is broken, with the reason; nobody else notices."""

    @pytest.mark.parametrize("bomb", BOMBS)
    async def test_is_told(self, sets: Sets, frugal: Sets, bomb: str) -> None:
        """Which limit and how much it is; others render meanwhile, in this process and in the child."""
        text, words = BOMBS[bomb]
        if "limit of CPU" in words:
            sets = frugal
        sets.bring(text)
        sets.bring(GOOD, "other")
        large = source(env=20_000) if bomb == "output" else source()
        async with asyncio.timeout(DEADLINE_S):
            error, default, other = await asyncio.gather(
                sets.error(values=large), sets.render("default"), sets.render("other", source(namespace="b"))
            )
        assert words in error.message
        assert error.message.startswith("ConfigMap home/own, deployment.spot.yaml.j2")
        assert 'the workloads of the template set "own" keep their last good twins' in error.message
        assert "try it with `splitter render`" in error.message
        assert (default.template_set, other.template_set) == ("default", "other")

    async def test_nobody_waits(self, frugal: Sets) -> None:
        """The default set renders while the child is busy with a bomb, again and again."""
        frugal.bring(LOOPS + HEAD)
        bomb = asyncio.create_task(frugal.error())
        order = 0
        while not bomb.done():
            await frugal.render("default")
            await asyncio.wait((bomb,), timeout=0.01)
            order += 1
        assert order > 5
        assert "limit of CPU, 1 s. It is not tried again until it changes" in (await bomb).message

    async def test_a_first_look_too(self, sets: Sets) -> None:
        """What takes too much to compile is found before a workload needs it."""
        faults = await sets.bounded.faults(sets.bring("{% if 1 %}" * 3_000 + "{% endif %}" * 3_000))
        assert len(faults) == len(Pool)
        assert all("it is nested too deeply to be read" in fault for fault in faults)

    async def test_time(self, hurried: Sets) -> None:
        """By the clock, where the CPU is not the limit; then it is tried again after a while."""
        hurried.bring(LOOPS + HEAD)
        error = await hurried.error()
        assert (
            "rendering it reached the limit of time, 0.2 s. It is tried again after 600 s, or"
            in error.message
        )
        assert not error.lasting


class TestBroken:
    """A set that reached a limit is not tried again for each of its users, until it changes."""

    @pytest.mark.parametrize(
        ("bomb", "tries"), [(LOOPS + HEAD, 1), (BOMBS["doubling"][0], 2)], ids=["loops", "doubling"]
    )
    async def test_is_tried_once(
        self, sets: Sets, frugal: Sets, asked: list[dict[str, object]], bomb: str, tries: int
    ) -> None:
        """Of twenty users at once, in two namespaces; what needs memory is tried twice, in a new child.

        Mended, it renders; broken again as it was, nobody has to try it.
        """
        if bomb.startswith(LOOPS):
            sets = frugal
        sets.bring(bomb)
        users = [source(env=number, namespace=f"n{number % 2}") for number in range(20)]
        errors = await asyncio.gather(*(sets.error(values=user) for user in users))
        assert len({error.message for error in errors}) == 1
        assert len(asked) == tries
        await sets.error()
        assert len(asked) == tries
        sets.bring(GOOD)
        assert (await sets.render()).hash
        assert len(asked) == tries + 1
        sets.bring(bomb)
        assert (await sets.error()).message == errors[0].message
        assert len(asked) == tries + 1

    async def test_an_ordinary_fault_is_no_limit(self, sets: Sets) -> None:
        """A template that fails for one source may do for another."""
        sets.bring(f"{HEAD}spec: {{minReadySeconds: {{{{ source.spec.minReadySeconds }}}}}}\n")
        error = await sets.error()
        assert not isinstance(error, LimitError)
        assert error.line == 3
        ready = source()
        spec = ready["spec"]
        assert isinstance(spec, dict)
        spec["minReadySeconds"] = 5
        assert (await sets.render(values=ready)).hash

    async def test_a_large_source_is_its_own_fault(self, asked: list[dict[str, object]]) -> None:
        """What is too much for the set that all use is told to its user, and tried for all others."""
        with closing(Sets(replace(PATIENT, memory_bytes=36 * MIB))) as sets:
            error = await sets.error("default", huge := source(env=12_000))
            assert "rendering it reached the limit of memory, 36 MiB" in error.message
            assert (
                "It is not tried again until it or the workload changes: make the workload's" in error.message
            )
            assert f"manifest smaller, which has {len(json.dumps(huge))} bytes" in error.message
            assert len(asked) == 2
            assert (await sets.error("default", huge)).message == error.message
            assert len(asked) == 2
            assert (await sets.render("default", source(env=1_000))).hash
            assert len(asked) == 3

    async def test_time_is_tried_again_after_a_while(self, asked: list[dict[str, object]]) -> None:
        """A machine that was busy must not break a set for ever."""
        with closing(Sets(replace(HURRIED, again_s=0.0))) as sets:
            sets.bring(LOOPS + HEAD)
            await sets.error()
            await sets.error()
            assert len(asked) == 2

    async def test_turns(self, sets: Sets, asked: list[dict[str, object]]) -> None:
        """Ten renderings of one set stand in nobody's way: another set's is the next but one."""
        sets.bring(GOOD)
        sets.bring(f"{GOOD}# other\n", "other")
        many = [sets.render(values=source(env=number)) for number in range(10)]
        await asyncio.gather(*many, sets.render("other"))
        assert [str(one["text"]).endswith("# other\n") for one in asked].index(True) <= 1


class TestChild:
    """The process that renders what others have written."""

    async def test_has_nothing(self, frugal: Sets) -> None:
        """No environment, no file but its two ends and its errors, and no way to get one."""
        frugal.bring(GOOD)
        await frugal.render()
        pid = frugal.bounded.child_pid
        assert pid is not None
        of = Path(f"/proc/{pid}")
        assert (of / "environ").read_bytes() == b""
        assert sorted(one.name for one in (of / "fd").iterdir()) == ["0", "1", "2"]
        assert (of / "cwd").readlink() == Path("/")
        for kind in (
            resource.RLIMIT_NOFILE,
            resource.RLIMIT_NPROC,
            resource.RLIMIT_FSIZE,
            resource.RLIMIT_CORE,
        ):
            assert resource.prlimit(pid, kind) == (0, 0)
        assert resource.prlimit(pid, resource.RLIMIT_AS) == (96 * MIB, 96 * MIB)
        assert 0 < resource.prlimit(pid, resource.RLIMIT_CPU)[0] < 10

    @pytest.mark.parametrize("times", [1, 2])
    async def test_killed_at_work(self, sets: Sets, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        """It is started anew and the rendering repeated, once; the second time it may be the template."""
        exchange = ChildProcess._exchange  # noqa: SLF001
        killed: list[int] = []

        def hit(self: ChildProcess, request: bytes, time_s: float) -> bytes:
            if len(killed) < times and self.pid is not None:
                killed.append(self.pid)
                os.kill(self.pid, signal.SIGKILL)
            return exchange(self, request, time_s)

        monkeypatch.setattr(ChildProcess, "_exchange", hit)
        sets.bring(GOOD)
        if times == 1:
            assert (await sets.render()).hash
        else:
            error = await sets.error()
            assert "rendering it ended the process that did it, twice (" in error.message
            assert "killed by SIGKILL). It is tried again after 600 s, or when it changes" in error.message
            assert not error.lasting
        assert len(set(killed)) == times

    def test_ends_with_its_parent(self) -> None:
        """However that ends, and though it is in the middle of something."""
        program = textwrap.dedent(
            f"""
            import asyncio, os, sys
            sys.path[:] = {sys.path!r}
            from splitter.render import Renderer, TemplateSet
            from splitter.render.bounded import BoundedRenderer
            from splitter.render.limits import Limits
            from splitter.core.desired.scheduling import NodePresets
            from splitter.core.labels_annotations.policy import Policy
            from splitter.core.replica import Pool

            sets = {{}}
            bounded = BoundedRenderer(Renderer(sets, NodePresets((), ())), Limits(cpu_s=600, time_s=600.0))

            def bring(text):
                sets["own"] = TemplateSet("own", {{"deployment/spot.yaml.j2": text}}, config_map="home/own")
                return bounded.render({source()!r}, Pool.SPOT, Policy(template_set="own"), 1)

            async def main():
                await bring({GOOD!r})
                task = asyncio.create_task(bring({LOOPS + HEAD!r}))
                await asyncio.wait((task,), timeout=0.1)
                print(bounded.child_pid, flush=True)
                await task

            asyncio.run(main())
            """
        )
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            handle = os.pidfd_open(pid)
            parent.kill()
            wait_gone(pid, handle)

    async def test_ends_when_it_is_told(self) -> None:
        """Nothing is left of a renderer that is closed."""
        with closing(Sets()) as sets:
            sets.bring(GOOD)
            await sets.render()
            pid = sets.bounded.child_pid
            assert pid is not None
            handle = os.pidfd_open(pid)
        wait_gone(pid, handle)
        assert sets.bounded.child_pid is None


class TestAnswers:
    """What a child says is data of whoever wrote the template, and looked at as such."""

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (b"[]", "rendering it gave no answer that makes sense"),
            (b"{}", "rendering it gave no answer that makes sense"),
            (b'{"fault": [1, {}]}', "rendering it gave no answer that makes sense"),
            (b'{"fault": [1, "%s"]}' % (b"x" * 5_000), "rendering it gave no answer that makes sense"),
            (b"nonsense", "ended the process that did it, twice (its answer is no JSON: "),
            (b"[" * 100_000, "ended the process that did it, twice (its answer is no JSON: "),
            (b'{"manifest": 5}', "the output is a number or boolean; it must be one mapping"),
            (b'{"manifest": {"apiVersion": "v1", "kind": "Secret"}}', 'the output is of kind "v1/Secret"'),
            (
                b'{"manifest": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"a": NaN}}}',
                "not JSON compliant",
            ),
        ],
    )
    async def test_that_are_none(
        self, sets: Sets, monkeypatch: pytest.MonkeyPatch, answer: bytes, words: str
    ) -> None:
        """Each is a fault of the set."""
        monkeypatch.setattr(ChildProcess, "_exchange", lambda *_: answer)
        sets.bring(GOOD)
        assert words in (await sets.error()).message

    async def test_are_made_ours(self, sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
        """Name, namespace, owner and selector are put right here, whatever the child says."""
        forged = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "victim", "namespace": "kube-system", "ownerReferences": []},
            "spec": {"replicas": 99, "selector": {"matchLabels": {"app": "victim"}}},
        }
        answer = json.dumps({"manifest": forged}).encode()
        monkeypatch.setattr(ChildProcess, "_exchange", lambda *_: answer)
        sets.bring(GOOD)
        twin = json.loads((await sets.render()).manifest_json)
        assert (twin["metadata"]["name"], twin["metadata"]["namespace"]) == ("web-spot", "shop")
        assert twin["metadata"]["ownerReferences"][0]["uid"] == "u-1"
        assert twin["spec"]["selector"]["matchLabels"]["app"] == "web"
        assert "replicas" not in twin["spec"]

    async def test_that_never_come(self, sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
        """A child that does not start is no fault of the set: it is said why, and tried again."""
        sets.bring(GOOD)
        with monkeypatch.context() as broken:
            broken.setattr(process_module, "_MAIN", "raise SystemExit('no room on this device')")
            error = await sets.error()
        assert (
            "the process that renders it cannot be started: no answer: no room on this device"
            in error.message
        )
        assert not error.lasting
        assert (await sets.render()).hash


async def test_others_are_not_told(sets: Sets) -> None:
    """A set that may not be used, or is not there, is nobody's work."""
    with pytest.raises(SplitterError, match="there is no template set"):
        await sets.render("nowhere")
    assert sets.bounded.child_pid is None
