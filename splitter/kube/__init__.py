"""Everything that talks to the Kubernetes API server.

`client` connects and sends, `watch` follows collections, `cache` keeps slim records, `observe` is the
only parser of raw API objects, `apply` the only writer. Nobody below this folder knows what a
workload should look like: that is the core's.
"""
