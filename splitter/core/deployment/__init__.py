"""Deployments alone: their pods change their owner, there and back, while they run."""
