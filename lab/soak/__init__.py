"""A day of deploys, scaling, policies and a real spot trace in 20 minutes (`make soak`)."""
