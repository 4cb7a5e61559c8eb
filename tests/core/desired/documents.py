"""Documents of any shape, for the tests of what is made of a template's output."""

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)
