"""Plays a story: lets the world act, then everybody else in the fixed order until nothing changes.

`Story` is what a test writes; its lines become the golden file.
"""

from splitter.core.actions import (
    Action,
    AdoptPods,
    ApplyTwin,
    CreatePlaceholder,
    DeletePlaceholder,
    DeletePod,
    DeleteReplicaSet,
    DeleteSplit,
    DeleteTwin,
    DeleteUnboundPod,
    DeleteVanishedPod,
    EnsureSplit,
    EvictPod,
    HideAvailable,
    KeepRevision,
    LabelPod,
    OrphanPods,
    Park,
    PauseTwin,
    PlaceOrdinals,
    Reattach,
    ReleaseSource,
    RestoreTemplate,
    RetryPods,
    SaveReplicas,
    Scale,
    SetBudget,
    SetDeletionCost,
    SetOwnershipMark,
    SetPaused,
    ShowReplicas,
    StripOwnershipMark,
)
from splitter.core.model import Pool
from splitter.core.plan import Plan, Rules
from splitter.plugin.core.action_messages import describe
from stories.cluster import Cluster, Deployment, ReplicaSet
from stories.controllers import actors, next_due
from stories.kubelets import fall_ill
from stories.promises import CONTROLLER, Promises, check_action
from stories.reconciles import Splitter

TURNS_MAX = 2_000  # at one instant; more is a livelock


class NeverSettlesError(AssertionError):
    """Splitter and the controllers answer each other without end."""


class Story:
    """A cluster with one workload, splitter, the promises, and what has happened so far."""

    def __init__(
        self, title: str, replicas: int = 10, surge: int = 3, unavailable: int = 2, *, spot_nodes: int = 3
    ) -> None:
        self.cluster = Cluster(replicas, surge, unavailable)
        self.promises = Promises(self.cluster)
        self.splitter = Splitter(self.cluster, Rules())
        self.splitter.judge = lambda action: check_action(self.cluster, action)
        self.lines = [f"# {title}", f"# N {replicas}, maxSurge {surge}, maxUnavailable {unavailable}", ""]
        self._held = ""
        for number in range(2):
            self.cluster.add_node(f"od-{number + 1}", spot=False, slots=40)
        for number in range(spot_nodes):
            self.cluster.add_node(f"spot-{chr(97 + number)}", spot=True, slots=10)
        self._settle()
        self.wait(60)
        self.promises.least_available = self.promises.most_placed = replicas

    # What a test says.

    def happens(self, text: str) -> None:
        """Write down what the world has just done, and let everybody answer."""
        with self.promises.world():
            pass
        self.lines.append(f"{self.clock}  {text}")
        self._settle()

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        end = self.cluster.now + seconds
        while (at := self._next()) is not None and at <= end:
            self.cluster.now = at
            self._settle()
        self.cluster.now = end
        self._settle()

    def label(self, **annotations: str) -> None:
        """Annotate and label the source."""
        self.cluster.annotate(**annotations)
        self.cluster.label(on=True)
        words = " ".join(f"{key.replace('_', '-')}={text}" for key, text in annotations.items())
        self.happens(f"web is labelled{', ' if words else ''}{words}")

    def unlabel(self) -> None:
        """Take the label away."""
        self.cluster.label(on=False)
        self.happens("the label is removed")

    def annotate(self, **annotations: str | None) -> None:
        """Annotate the source."""
        self.cluster.annotate(**annotations)
        words = " ".join(
            f"{key.replace('_', '-')}{'-' if text is None else f'={text}'}"
            for key, text in annotations.items()
        )
        self.happens(f"web is annotated, {words}")

    def create_anew(self, *, labelled: bool) -> None:
        """Delete the source without what it owns, and apply its manifest again."""
        self.cluster.create_anew(labelled=labelled)
        how = "with" if labelled else "without"
        self.happens(f"web is deleted with --cascade=orphan and created again {how} its label")

    def reason(self) -> str:
        """Return the reason word that the Split shows."""
        return str(self.cluster.split.status["reason"]) if self.cluster.split is not None else ""

    def available(self) -> int:
        """Count the pods that answer and are to stay."""
        return sum(self.cluster.available(pod) for pod in self.cluster.pods.values())

    def scale(self, replicas: int) -> None:
        """Run `kubectl scale`."""
        was = self.cluster.source.replicas
        self.cluster.change_spec(self.cluster.source, replicas=replicas)
        self.happens(f"web is scaled {was} -> {replicas}")

    def set_image(self, template: str) -> None:
        """Run `kubectl set image`."""
        self.cluster.change_spec(self.cluster.source, template=template)
        self.happens(f"web gets the image of {template}")

    def resume(self) -> None:
        """Run `kubectl rollout resume`, which nobody should."""
        self.cluster.unpause()
        self.happens("somebody runs kubectl rollout resume")

    def notice(self, *names: str) -> None:
        """Announce that nodes go."""
        for name in names:
            self.cluster.notice(name)
        pods = sum(1 for pod in self.cluster.pods.values() if pod.active and pod.node in names)
        self.happens(f"{' and '.join(names)} get an interruption notice; {pods} pods will be lost")

    def drain(self, *names: str) -> None:
        """Evict all pods of nodes."""
        pods = [pod for pod in self.cluster.pods.values() if pod.active and pod.node in names]
        for pod in pods:
            self.cluster.terminate(pod)
        self.happens(f"{len(pods)} pods of {' and '.join(names)} are evicted")

    def vanish(self, *names: str) -> None:
        """Take nodes away."""
        pods = sum(1 for pod in self.cluster.pods.values() if pod.active and pod.node in names)
        for name in names:
            self.cluster.vanish(name)
        self.happens(f"{' and '.join(names)} are gone, with {pods} pods")

    def add_spot(self, *names: str) -> None:
        """Bring spot nodes."""
        for name in names:
            self.cluster.add_node(name, spot=True, slots=10)
        self.happens(f"{' and '.join(names)} come")

    def limit_pods(self, quota: int | None) -> None:
        """Change the quota of the namespace."""
        self.cluster.quota = quota
        self.happens(f"a quota allows {quota} pods" if quota is not None else "the quota is taken away")

    def refuse_writes(self, seconds: int) -> None:
        """Have the API server refuse what splitter writes, for a while."""
        self.splitter.refused_until = self.cluster.now + seconds
        self.happens(f"the API server refuses splitter's writes for {seconds} s")

    def registry(self, *, answers: bool) -> None:
        """Take the registry of images away, or bring it back."""
        self.cluster.registry_answers = answers
        self.happens(f"the registry {'answers again' if answers else 'does not answer any more'}")

    def claim(self, *, there: bool) -> None:
        """Take away the volume claim that the pods name, or make it again."""
        self.cluster.claim_is_there = there
        self.happens(f"somebody {'makes' if there else 'deletes'} the claim that the pods name")

    def taint_spot(self, taint: str) -> None:
        """Taint all spot nodes, or take the taint away."""
        self.cluster.spot_taint = taint
        self.happens(f"all spot nodes get the taint {taint}" if taint else "the taint is taken away")

    # How it is played.

    def _next(self) -> int | None:
        due = next_due(self.cluster)
        if self.splitter.wake_at is not None and self.splitter.wake_at > self.cluster.now:
            due.append(self.splitter.wake_at)
        return min(due, default=None)

    def _settle(self) -> None:
        for _ in range(TURNS_MAX):
            changed = False
            for act in actors(self.cluster):
                with self.promises.step(CONTROLLER):
                    changed = act() or changed
            if fall_ill(self.cluster):
                self.promises.happened()
                changed = True
            if not changed and not self._reconcile():
                return
        raise NeverSettlesError("\n".join(self.lines[-12:]))

    def _reconcile(self) -> bool:
        if "splitter.io/split" not in self.cluster.source.labels and self.cluster.split is None:
            return False
        counts = self.counts()
        self.promises.look()
        result = self.splitter.begin()
        done: list[Action] = []
        while self.splitter.pending:
            action = self.splitter.pending[0]
            with self.promises.step(f"{self.clock} {_said(action)}"):
                if not self.splitter.write_next():
                    refused = self.cluster.now < self.splitter.refused_until
                    self.lines.append(f"       {'refused' if refused else 'lost a race at'}: {_said(action)}")
                    break
            done.append(action)
        self._tell(counts, result, done)
        return bool(done)

    def _tell(self, counts: str, planned: Plan, done: list[Action]) -> None:
        verdict = f"{planned.verdict.message} ({planned.verdict.reason})"
        reasons = f"{planned.state} {planned.verdict.reason}"
        if done:
            self.lines.append(f"{self.clock}  {counts}")
            self.lines.append(f"    -> {_grouped(done)}")
            # The counts stand in the line above already.
            why = planned.verdict.message
            why = why.partition(": ")[2] if why.startswith("scale ") else why
            self.lines.append(f"       {why}{' ' if why else ''}({planned.verdict.reason})")
        elif reasons != self._held:
            self.lines.append(f"{self.clock}  {counts}")
            self.lines.append(f"       {planned.state}: {verdict}")
        self._held = reasons

    @property
    def clock(self) -> str:
        """Return the time since the label, minutes and seconds."""
        at = self.cluster.now - 60
        return f"{at // 60:02}:{at % 60:02}"

    def counts(self) -> str:
        """Say who holds how many: spec/available."""
        cluster = self.cluster
        words = [self._deployment(cluster.source, "source")] if cluster.owned_by(cluster.source) else []
        words += [self._replica_set(rs) for rs in cluster.released() if rs.spec or rs.status_replicas]
        if orphans := cluster.orphans():
            words.append(f"no owner {len(orphans)}/{sum(map(cluster.available, orphans))}")
        words += [self._deployment(cluster.twins[pool], pool.value) for pool in Pool if pool in cluster.twins]
        return "  ".join(words) or "nothing runs"

    def _replica_set(self, rs: ReplicaSet) -> str:
        available = sum(self.cluster.available(pod) for pod in self.cluster.pods_of(rs))
        return f"parked {rs.name} {rs.spec}/{available}{self._doomed([rs])}"

    def _deployment(self, deployment: Deployment, name: str) -> str:
        owned = self.cluster.owned_by(deployment)
        available = sum(self.cluster.available(pod) for rs in owned for pod in self.cluster.pods_of(rs))
        return f"{name} {deployment.replicas}/{available}{self._doomed(owned)}"

    def _doomed(self, sets: list[ReplicaSet]) -> str:
        pods = [pod for rs in sets for pod in self.cluster.pods_of(rs)]
        doomed = sum(1 for pod in pods if self.cluster.serves(pod) and not self.cluster.available(pod))
        return f" +{doomed} doomed" if doomed else ""


def _grouped(actions: list[Action]) -> str:
    costs = sum(isinstance(action, SetDeletionCost) for action in actions)
    labels = sum(isinstance(action, LabelPod) and action.pool is not None for action in actions)
    unlabelled = sum(isinstance(action, LabelPod) and action.pool is None for action in actions)
    deleted = sum(isinstance(action, DeleteVanishedPod) for action in actions)
    words = [
        _said(one) for one in actions if not isinstance(one, SetDeletionCost | DeleteVanishedPod | LabelPod)
    ]
    words += [f"label {labels} pods"] if labels else []
    words += [f"unlabel {unlabelled} pods"] if unlabelled else []
    words += [f"deletion cost of {costs} pods"] if costs else []
    words += [f"delete {deleted} pods of vanished nodes"] if deleted else []
    return "; ".join(words)


def _said(action: Action) -> str:  # noqa: C901, PLR0911, PLR0912 - one line a write
    match action:
        case Scale():
            return f"scale {action.name} {action.was} -> {action.replicas} ({action.replicas - action.was:+})"
        case EnsureSplit():
            return f"write the Split ({'takes over' if action.takes_over else 'reports only'})"
        case DeleteSplit():
            return "delete the Split"
        case SetOwnershipMark():
            return "mark the source" if action.value else "remove the mark"
        case SetBudget():
            return describe(action)
        case SetPaused():
            return "pause the source" if action.paused else "unpause the source"
        case SaveReplicas():
            return f"save {action.replicas} replicas"
        case ShowReplicas():
            return f"show {action.replicas} replicas on the Split"
        case ReleaseSource():
            return "remove mark and replicas"
        case Park():
            return f"park {action.name}"
        case Reattach():
            return f"re-attach {action.name}"
        case PauseTwin() | LabelPod() | KeepRevision() | OrphanPods() | AdoptPods() | DeletePod():
            return describe(action)
        case DeleteReplicaSet():
            return f"delete {action.name}"
        case ApplyTwin():
            rolled = f", maxSurge {action.max_surge}, maxUnavailable {action.max_unavailable}"
            verb = "create" if action.resource_version is None else "update"
            said = f"{verb} {action.pool} twin as {action.hash} at {action.replicas}"
            return f"{said}{rolled if verb == 'update' else ''}"
        case DeleteUnboundPod():
            return f"delete {action.pod}, which has no node"
        case PlaceOrdinals() | EvictPod() | CreatePlaceholder() | DeletePlaceholder():
            raise AssertionError(f"no StatefulSet is placed in a story: {action}")
        case RestoreTemplate():
            return f"put the template of {action.replica_set} back on {action.twin}"
        case RetryPods() | HideAvailable():
            raise AssertionError(f"no part of what a plan decides: {action}")
        case StripOwnershipMark():
            return f"take the mark off {action.name}"
        case DeleteTwin():
            return f"delete {action.name}"
        case SetDeletionCost():
            return f"deletion cost of {action.pod}: {action.cost}"
        case DeleteVanishedPod():
            return f"delete {action.pod}"
