"""Failed requests on real nodes, beside a plain Deployment (`make traffic`)."""
