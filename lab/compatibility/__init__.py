"""Tests with each Kubernetes and each Python that are promised (`make compatibility`)."""
