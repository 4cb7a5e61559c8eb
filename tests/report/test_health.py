"""What is answered to the kubelet: each check with its verdict, message and age."""

import json
import urllib.error
import urllib.request

from clock import Clock
from splitter.report.health import Check, Health, serve


def ask(port: int, path: str) -> tuple[int, dict[str, object]]:
    """Ask as the kubelet does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


class TestAnswers:
    def test_says_what_is_wrong(self) -> None:
        """Both answers are JSON, with each check's message and age; each looks at its own verdict."""
        health = Health()
        port = serve(health, 0)
        health.show([Check("watch /api/v1/pods", "is not listed yet", ready=False, age_s=3.21)])
        status, body = ask(port, "/healthz")
        assert (status, body["ok"]) == (200, True)
        status, body = ask(port, "/readyz?verbose")
        assert (status, body["ok"]) == (503, False)
        assert isinstance(body["checks"], dict)
        assert body["checks"]["watch /api/v1/pods"] == {
            "ok": False,
            "message": "is not listed yet",
            "age_s": 3.2,
        }
        assert body["checks"]["event-loop"]["message"] == "turns"
        assert ask(port, "/elsewhere")[0] == 404

    def test_holds_no_value(self) -> None:
        """What a server quotes is cut, as in the log."""
        health = Health()
        health.show([Check("watch", 'refused: Invalid value: "hunter2": must be shorter', ready=False)])
        text = json.dumps(health.answer("/readyz"))
        assert "Invalid value: " in text
        assert "hunter2" not in text

    def test_before_the_first_look(self) -> None:
        """A process that has just begun is live and not ready."""
        health = Health()
        assert _status(health, "/healthz") == 200
        assert _status(health, "/readyz") == 503

    def test_event_loop_stuck(self) -> None:
        """Without a snapshot for half a minute the event loop is stuck: neither live nor ready."""
        clock = Clock()
        health = Health(clock)
        health.show([Check("passes", "0 workloads wait")])
        clock.now_s += 29
        assert _status(health, "/healthz") == 200
        clock.now_s += 2
        assert _status(health, "/healthz") == _status(health, "/readyz") == 503
        result = health.answer("/healthz")
        assert result is not None
        assert "has not turned for 31 s" in json.dumps(result[1])

    def test_what_is_old(self) -> None:
        """What was seen before the event loop stopped is said to be so: another process may lead by now."""
        clock = Clock()
        health = Health(clock)
        health.show([Check("leader", "this process")])
        clock.now_s += 12
        health.held_up_by = "evil/web"
        result = health.answer("/readyz")
        assert result is not None
        status, body = result
        assert status == 200
        assert body["checks"] == {
            "event-loop": {
                "ok": True,
                "message": "has not turned for 12 s: evil/web holds it up",
                "age_s": 12.0,
            },
            "leader": {"ok": True, "message": "this process (12 s ago)"},
        }


def _status(health: Health, path: str) -> int:
    result = health.answer(path)
    assert result is not None
    return result[0]
