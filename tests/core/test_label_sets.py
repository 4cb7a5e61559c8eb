"""Many selectors against many sets of labels: what each takes, and what all of them cost."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from cpu import cpu_below
from splitter.core.label_sets import LabelSets, Term
from splitter.core.nodes.fit import MatchExpression

WORDS = st.sampled_from(("a", "b", "c"))
LABELS = st.dictionaries(WORDS, WORDS, max_size=3)
ADDED = st.lists(st.tuples(LABELS, st.lists(LABELS, max_size=3)), max_size=3)
OPERATORS = st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist"))
TERMS = st.lists(st.tuples(WORDS, OPERATORS, st.lists(WORDS, max_size=2).map(tuple)), max_size=3)


@given(ADDED, TERMS)
def test_as_one_by_one(
    added: list[tuple[Mapping[str, str], list[Mapping[str, str]]]], terms: list[Term]
) -> None:
    """It takes the sets of which every term holds, as if each were looked at by itself."""
    sets = LabelSets()
    whole: list[Mapping[str, str]] = []
    for common, own in added:
        sets.add(common, *own)
        whole += [{**common, **labels} for labels in own]
    expressions = [MatchExpression(*term) for term in terms]  # type: ignore[arg-type]
    expected = [all(one.matches(labels) for one in expressions) for labels in whole]
    taken = sets.selected(terms)
    assert [bool(taken >> number & 1) for number in range(len(whole))] == expected
    assert taken >> len(whole) == 0


def test_an_unknown_operator() -> None:
    """It counts as if it matched."""
    sets = LabelSets()
    sets.add({}, {})
    assert sets.selected([("a", "Gt", ("1",))]) == 1


def test_cost() -> None:
    """1,000 sets of 5,000 labels in common, and 1,000 selectors of 100 terms that nothing ends early."""
    sets = LabelSets()
    with cpu_below(1.0):
        sets.add({f"l-{number}": "" for number in range(5_000)}, *({"n": str(n)} for n in range(1_000)))
        terms = [(f"absent-{number}", "DoesNotExist", ()) for number in range(100)]
        assert all(sets.selected(terms) for _ in range(1_000))
