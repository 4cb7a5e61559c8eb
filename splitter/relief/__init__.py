"""Decides by real use which replicas leave a hot node, come to spot or are spread, while a workload asks.

`watch` looks at real use while a workload asks for relief, and tells its reconcile; `cluster` turns what is
known into what the decision looks at (`loads`). The decision is pure and takes times as arguments: `samples`
judges what was measured, `look` counts what is there, `decide` chooses on hot nodes, `to_spot` on on-demand
and `spread` in crowds, `hint` keeps the new replica off. The move itself is its workload's reconcile
(`core.relief`, docs/adr/0059). All this is loaded only if the settings name a source of real use
(docs/adr/0111).
"""
