"""A plan in words."""

from builders import observation
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.plan import Plan, PolicyInForce
from splitter.core.reasons import Reason, State
from splitter.plugin.cli.plan import lines_of
from splitter.plugin.preview import Preview


class TestAPlanInWords:
    """What `splitter plan` says of one workload."""

    def test_has_its_advice(self) -> None:
        """Marked as what people should know; it is nothing that would be written."""
        advice = Note(Reason.NOTICE_TOO_SHORT, "pods need 300 s, the notice is 30 s")
        planned = Plan(Step.RUN, State.STEADY, Note(Reason.BALANCED, "as wanted"), advice=(advice,))
        preview = Preview(observation(), PolicyInForce(Policy(), (), {}, valid=True), planned)
        assert lines_of(preview) == [
            "shop/web  Steady",
            "  as wanted (Balanced)",
            "  ! pods need 300 s, the notice is 30 s (NoticeTooShort)",
            "  would write nothing",
        ]
