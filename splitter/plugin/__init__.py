"""What a person runs with a kubeconfig: `splitter VERB`, and the same as `kubectl splitter VERB`.

`cli` has the verbs, `dashboard` the page, `simulate` the simulator, `preview` what the controller would do
now; `core`, `kube` and `report` have what only these need. The controller imports nothing from here, and the
image has none of it (docs/adr/0110-three-houses.md).
"""
