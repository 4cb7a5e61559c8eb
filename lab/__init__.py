"""What runs around splitter and never in the pod: control planes, the demo, benches, campaigns.

It knows splitter by its command line, its manifests and the objects of the API, as any user does.
"""
