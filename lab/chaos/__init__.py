"""Faults between splitter and the API server, in a world that does not keep still (`make chaos`)."""
