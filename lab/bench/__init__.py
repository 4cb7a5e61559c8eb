"""Measures splitter on the sandbox, beside plain Deployments and other systems."""
