"""From another version of splitter to this one and back, with its own code (`make upgrade`)."""
