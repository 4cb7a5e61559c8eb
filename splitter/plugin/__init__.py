"""What a person runs with a kubeconfig: `splitter VERB`, and the same as `kubectl splitter VERB`."""
