"""The page of `splitter dashboard`: what splitter does, live, on loopback, read-only.

`plugin.cli.dashboard` calls `serve`. `model` keeps what was seen, `fleet`, `workload` and `clusters` say
what is shown of it, `views` renders that, `server` answers, `guard` says to whom, `simulator` plays
policies. All is read with the rights of the person who started it.
"""

from splitter.plugin.dashboard.clusters import Clusters, Member, Wishes
from splitter.plugin.dashboard.model import Model
from splitter.plugin.dashboard.server import Served, serve, serve_clusters
from splitter.plugin.dashboard.simulator import Simulator
from splitter.plugin.dashboard.views import ClustersViews, Tellers, Views

__all__ = [
    "Clusters",
    "ClustersViews",
    "Member",
    "Model",
    "Served",
    "Simulator",
    "Tellers",
    "Views",
    "Wishes",
    "serve",
    "serve_clusters",
]
