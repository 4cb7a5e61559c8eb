"""Computes what a twin must look like, and compares it with what is there.

`render` calls `enforce` on what a template rendered and `rendered_hash` on the result; the planner
compares that hash with the one stored on the twin, never the manifest with a server-defaulted
object. `template_hash` finds the ReplicaSet that runs a template. The functions that add affinity
and tolerations or merge are the templates' filters (templates/README.md). Manifests are plain JSON
(mappings, lists, scalars); no function here changes what it was given.
"""
