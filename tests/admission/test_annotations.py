"""The policy about annotations says what the parser says."""

import re

from hypothesis import given
from hypothesis import strategies as st

from splitter.admission.annotations import FORMS
from splitter.core.labels_annotations.policy import USER_ANNOTATIONS
from splitter.core.labels_annotations.words import parse_duration


class TestForms:
    """The policy judges by pattern and bounds what the parser reads."""

    def test_every_annotation_has_one(self) -> None:
        """Whatever a user may write is looked at."""
        assert sorted(FORMS) == sorted(USER_ANNOTATIONS)

    @given(st.sampled_from(sorted(FORMS)), st.text() | st.from_regex(r"[0-9]{0,7}[hms]([0-9]{1,7}[ms])?"))
    def test_pattern_and_bounds_are_the_whole_rule(self, key: str, text: str) -> None:
        """Nothing but the pattern and, of a duration, the bounds decides whether a value is read."""
        form = FORMS[key]
        reads = re.fullmatch(form.pattern, text) is not None
        if reads and form.within_s is not None:
            least, most = form.within_s
            seconds = parse_duration(text)
            reads = seconds is not None and least <= seconds <= most
        assert (form.read(text) is not None) == reads
