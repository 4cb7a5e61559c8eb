"""Splitter and plain Deployments lose their spot nodes side by side (`make compare`)."""
