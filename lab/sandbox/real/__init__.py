"""Real nodes: kubelets, a container runtime and containers in namespaces of this machine, without root.

`build` builds what they run, `world` is where they are, `machine` and `machine.sh` make one, `fleet` buys and
loses them. They join the control plane of `Sandbox`, beside the machines that KWOK plays.
"""
