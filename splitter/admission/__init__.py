"""Generates admission policies for the API server from splitter's own tables.

`splitter admission` prints them, `manifests/admission` holds what it prints. Pure: data in, manifests out;
nothing here talks to a cluster or is asked while splitter runs. A policy that is not made of a table (what
splitter's own account may do, what keeps the CRD) is written by hand beside them.
"""

from splitter.admission.annotations import annotation_policies
from splitter.admission.notices import notices_policy
from splitter.admission.placement import placement_policy

__all__ = ["annotation_policies", "notices_policy", "placement_policy"]
