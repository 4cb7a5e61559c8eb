"""The pure core: data in, data out.

No cluster, clock, disk, dice or logging below this folder; instants are arguments. import-linter
holds the order of its modules (pyproject.toml).
"""
