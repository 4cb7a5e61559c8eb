"""Settings: where a value comes from, and what a user reads when one is wrong."""

from pathlib import Path

import pytest

from splitter.assembly import rules_of
from splitter.bundled import bundled_path
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Tuning
from splitter.settings import Settings
from splitter.settings.loading import load_settings


def message(file: Path | None = None, /, **environment: str) -> str:
    """Return what a user reads when the settings are refused."""
    with pytest.raises(SplitterError) as caught:
        load_settings(file, {f"SPLITTER_{name}": value for name, value in environment.items()})
    return caught.value.message


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a settings file that is not written yet."""
    return tmp_path / "settings.yaml"


class TestPrecedence:
    def test_defaults(self) -> None:
        """Without file and environment everything has its default."""
        settings = load_settings(environment={})
        tuning, policy = Tuning(), Policy()
        assert settings == Settings()
        assert settings.templates_dir == bundled_path("templates")
        assert (settings.soak_s, settings.grace_s) == (policy.soak_s, policy.grace_s)
        own = {name: value for name, value in settings.tuning if hasattr(tuning, name)}
        assert own == {name: getattr(tuning, name) for name in own}
        assert len(own) == 11

    def test_environment_over_file(self, file: Path) -> None:
        """The environment wins over the file, the file over the defaults, setting by setting."""
        file.write_text(
            "workers: 5\nsoak_s: 60\nwatch_namespaces: [shop]\n"
            "tuning: {calm_s: 50, fast_s: 9, release_s: null}\n"
        )
        over = {"WORKERS": "3", "WATCH_NAMESPACES": "a, b,", "TUNING_CALM_S": "5"}
        settings = load_settings(file, {f"SPLITTER_{name}": value for name, value in over.items()})
        assert settings.model_dump(exclude_defaults=True) == {
            "workers": 3,
            "soak_s": 60.0,
            "watch_namespaces": ("a", "b"),
            "tuning": {"calm_s": 5.0, "fast_s": 9.0},
        }

    def test_empty_file(self, file: Path) -> None:
        """An empty file says nothing."""
        file.write_text("# nothing yet\n")
        assert load_settings(file, {}) == Settings()

    def test_process_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Unless another environment is given, it is the process's own."""
        monkeypatch.setenv("SPLITTER_DELETE_PODS_OF_VANISHED_NODES", "false")
        assert load_settings().delete_pods_of_vanished_nodes is False

    def test_home(self) -> None:
        """A path may begin with ~."""
        assert load_settings(environment={"SPLITTER_KUBECONFIG": "~/k"}).kubeconfig == Path.home() / "k"

    def test_frozen(self) -> None:
        """Nothing changes settings after the start."""
        with pytest.raises(ValueError, match="frozen"):
            Settings().workers = 9  # type: ignore[misc]


class TestOwnNamespace:
    def test_is_a_name(self) -> None:
        """What names no namespace is refused; empty is none."""
        assert load_settings(environment={"SPLITTER_OWN_NAMESPACE": ""}).own_namespace == ""
        assert message(OWN_NAMESPACE="Tools") == (
            'SPLITTER_OWN_NAMESPACE: "Tools" names no namespace. Write for example "splitter-system".'
        )


class TestRelief:
    def test_is_the_default_of_the_annotation(self) -> None:
        """Nothing is relieved unless somebody says so."""
        asked = load_settings(environment={"SPLITTER_RELIEF": "cpu=85"})
        assert rules_of(asked).defaults.relief == "cpu=85"
        assert rules_of(load_settings(environment={})).defaults.relief is None

    @pytest.mark.parametrize("value", ["cpu=40", "cpu=85,cpu=90", "85", "cpu=nan", "memory=101", "disk=80"])
    def test_is_written_as_in_the_annotation(self, value: str) -> None:
        """What cannot be read is refused at the start."""
        said = message(RELIEF=value)
        assert said.startswith(f'SPLITTER_RELIEF: "{value}" is not "off", or from which percent of a node')
        assert said.endswith('Write for example "cpu=85,memory=90".')

    def test_restarts_nobody(self) -> None:
        """A StatefulSet asks for restarts itself; here the word would do nothing."""
        said = message(RELIEF="cpu=85,restarts")
        assert said.startswith("SPLITTER_RELIEF: restarts have to be asked for on each StatefulSet itself.")


class TestClientCertificates:
    @pytest.mark.parametrize("of", ["metrics", "estimator"])
    def test_need_a_certificate_of_the_server(self, of: str) -> None:
        """An authority for clients without TLS would only look like a lock."""
        said = message(**{f"{of}_client_ca".upper(): "/ca.crt"})
        assert f"Write {of}_tls too" in said


class TestPrometheus:
    def test_needs_an_address(self) -> None:
        """One without credentials, which would be said where it does not answer."""
        assert "Write its address too, as relief_prometheus" in message(RELIEF_SOURCE="prometheus")
        for address in ("prometheus:9090", "http://", "http://me:secret@prometheus", "http://a?b=c"):
            said = message(RELIEF_PROMETHEUS=address)
            assert "it is no address, or has credentials" in said
            assert "secret" not in said
        asked = {"SPLITTER_RELIEF_SOURCE": "prometheus", "SPLITTER_RELIEF_PROMETHEUS": "https://m.example/p"}
        assert load_settings(environment=asked).relief_prometheus == "https://m.example/p"


ONE_BY_ONE = "Write a variable for each, such as SPLITTER_TUNING_CALM_S."
SECONDS = 'it must be a number of seconds, 0 or more. Write for example "3600".'
NO_BLOCK = 'it must be a block of settings. Write for example "tuning: {calm_s: 60}".'


class TestMessages:
    @pytest.mark.parametrize(
        ("name", "value", "sentence"),
        [
            (
                "SOAK_S",
                "10m",
                'SPLITTER_SOAK_S is "10m"; it must be a number of seconds, 1..3600. Write "600".',
            ),
            (
                "WORKERS",
                "0",
                'SPLITTER_WORKERS is "0"; it must be a whole number, 1..256. Write for example "8".',
            ),
            (
                "TUNING_STEP_FRACTION",
                "2",
                (
                    'SPLITTER_TUNING_STEP_FRACTION is "2"; it must be a number, more than 0, at most 1. '
                    'Write for example "0.25".'
                ),
            ),
            (
                "RESYNC_S",
                "inf",
                (
                    'SPLITTER_RESYNC_S is "inf"; it must be a number of seconds, 1 or more. '
                    'Write for example "300".'
                ),
            ),
            (
                "LOOK_AGAIN_S",
                "0.5",
                (
                    'SPLITTER_LOOK_AGAIN_S is "0.5"; it must be a number of seconds, 1 or more. '
                    'Write for example "60".'
                ),
            ),
            (
                "LOG_FORMAT",
                "xml",
                'SPLITTER_LOG_FORMAT is "xml"; it must be one of "text", "json". Write for example "text".',
            ),
            (
                "DELETE_PODS_OF_VANISHED_NODES",
                "maybe",
                (
                    'SPLITTER_DELETE_PODS_OF_VANISHED_NODES is "maybe"; it must be true or false. '
                    'Write for example "true".'
                ),
            ),
            ("CONTEXT", "", 'SPLITTER_CONTEXT is ""; it must be a text. Leave it out for the default.'),
            ("WORKRS", "3", "SPLITTER_WORKRS is no setting; did you mean SPLITTER_WORKERS?"),
            ("CALM_S", "3", "SPLITTER_CALM_S belongs under tuning. Write SPLITTER_TUNING_CALM_S."),
            (
                "TUNING_SOAK_S",
                "3",
                "SPLITTER_TUNING_SOAK_S does not belong under tuning. Write SPLITTER_SOAK_S.",
            ),
            (
                "TUNING_CLAM_S",
                "3",
                "SPLITTER_TUNING_CLAM_S is no setting; did you mean SPLITTER_TUNING_CALM_S?",
            ),
            ("TUNING", "{}", f"SPLITTER_TUNING is no setting. {ONE_BY_ONE}"),
            (
                "TUNING_CALM_S",
                "1h",
                'SPLITTER_TUNING_CALM_S is "1h"; it must be a number of seconds, 0 or more. Write "3600".',
            ),
            (
                "PROVIDER_PRESETS",
                "gke,kerpenter",
                'SPLITTER_PROVIDER_PRESETS: "kerpenter" is no preset; did you mean karpenter?',
            ),
            (
                "SPOT_SELECTORS",
                "a=b=c",
                (
                    'SPLITTER_SPOT_SELECTORS: \'a=b=c\' is no node selector; write "key=value", or "key" for '
                    "any value, one label each."
                ),
            ),
            (
                "TUNING_SOAK_MAX_S",
                "60",
                (
                    "soak_s is 600 and tuning.soak_max_s 60; the first may not be the longer. "
                    "Write soak_max_s: 600 or more under tuning."
                ),
            ),
            (
                "WATCH_NAMESPACES",
                "shop,kube-system",
                "watch_namespaces and excluded_namespaces both name kube-system. Take it out of one of them.",
            ),
            (
                "WATCH_NAMESPACES",
                "shop,splitter-system",
                (
                    "watch_namespaces names splitter-system, splitter's own namespace, in which it splits "
                    "nothing. Take it out, and let splitter run in a namespace of its own."
                ),
            ),
            (
                "LISTEN_ADDRESS",
                "localhost",
                'SPLITTER_LISTEN_ADDRESS: "localhost" is no IP address. Write for example "127.0.0.1".',
            ),
        ],
    )
    def test_environment(self, name: str, value: str, sentence: str) -> None:
        """A bad variable is named as it was written, with what it must be and what to write."""
        assert message(None, **{name: value}) == sentence

    def test_file(self, file: Path) -> None:
        """A bad key is named with its file; every mistake is in the one message."""
        file.write_text("soak: 60\nhttp_port: 100000\nwatch_namespaces: 3\n")
        assert message(file) == (
            f"soak in {file} is no setting; did you mean soak_s? "
            f'watch_namespaces in {file} is "3"; it must be a list of texts (in the environment: with '
            f"commas between them). Leave it out for the default. "
            f'http_port in {file} is "100000"; it must be a whole number, 0..65535. Write for example "8080".'
        )

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (
                "calm_s: 60",
                'calm_s in FILE belongs under tuning. Write "calm_s: ..." below tuning:, indented.',
            ),
            (
                "tuning.calm_s: 60",
                'tuning.calm_s in FILE belongs under tuning. Write "calm_s: ..." below tuning:, indented.',
            ),
            (
                "tuning: {soak_s: 60}",
                'tuning.soak_s in FILE does not belong under tuning. Write "soak_s: ..." outside it.',
            ),
            ("tuning: {clam_s: 60}", "tuning.clam_s in FILE is no setting; did you mean tuning.calm_s?"),
            ("tunning: {calm_s: 60}", "tunning in FILE is no setting; did you mean tuning?"),
            ("tuning:", f"tuning in FILE is empty; {NO_BLOCK}"),
            ("tuning: []", f'tuning in FILE is "[]"; {NO_BLOCK}'),
            ("tuning: fast", f'tuning in FILE is "fast"; {NO_BLOCK}'),
            (
                "tuning: {calm_s: 1h}",
                'tuning.calm_s in FILE is "1h"; it must be a number of seconds, 0 or more. Write "3600".',
            ),
            (
                "tuning: {calm_s: }",
                f"tuning.calm_s in FILE is empty; {SECONDS}",
            ),
            (
                "tuning: {calm_s: {a: b}}",
                f"tuning.calm_s in FILE is \"{{'a': 'b'}}\"; {SECONDS}",
            ),
        ],
    )
    def test_tuning(self, file: Path, text: str, sentence: str) -> None:
        """A timing in the wrong place says which is right; a block that is none, how one looks."""
        file.write_text(text)
        assert message(file) == sentence.replace("FILE", str(file))

    def test_far_from_any(self, file: Path) -> None:
        """A key that resembles nothing gets the list of all, within a block of those there."""
        file.write_text("xyzzy: 1\n")
        assert message(file).startswith(f"xyzzy in {file} is no setting; known are kubeconfig, context, ")
        file.write_text("tuning: {xyzzy: 1}\n")
        assert message(file).startswith(f"tuning.xyzzy in {file} is no setting; known are tuning.soak_max_s")

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("a: [", "cannot be read: while parsing"),
            ("a: 2026-99-99", "cannot be read: month must be in 1..12"),
            ("a: !!bool maybe", "cannot be read: 'maybe'"),
            ("- a\n", 'are no mapping. Write lines such as "workers: 8".'),
        ],
    )
    def test_unreadable(self, file: Path, text: str, part: str) -> None:
        """A file that is not a mapping in YAML is named."""
        file.write_text(text)
        assert message(file).startswith(f"the settings {file} ")
        assert part in message(file)

    def test_missing_file(self, file: Path) -> None:
        """A file that is not there is an error: its user believes that it is in force."""
        assert "No such file or directory" in message(file)


class TestForeignVariables:
    def test_service_links(self) -> None:
        """What Kubernetes writes for Services called splitter, splitter-http, ... is no setting of ours."""
        environment = {
            "SPLITTER_SERVICE_HOST": "10.0.0.1",
            "SPLITTER_SERVICE_PORT": "80",
            "SPLITTER_SERVICE_PORT_METRICS": "80",
            "SPLITTER_PORT": "tcp://10.0.0.1:80",
            "SPLITTER_PORT_80_TCP": "tcp://10.0.0.1:80",
            "SPLITTER_PORT_80_TCP_ADDR": "10.0.0.1",
            "SPLITTER_WEB_SERVICE_HOST": "10.0.0.1",
            "SPLITTER_HTTP_PORT": "tcp://10.0.0.1:8080",
            "SPLITTER_HTTP_PORT_8080_TCP_PROTO": "tcp",
            "SPLITTER_METRICS_PORT": "tcp://10.0.0.1:8081",
        }
        assert load_settings(environment=environment) == Settings()

    def test_others(self) -> None:
        """Variables of other programs, and of the tests, are nobody's settings."""
        environment = {"PATH": "/bin", "SPLITTERS": "1", "SPLITTER_REGENERATE": "1"}
        assert load_settings(environment=environment) == Settings()
