"""The Deployment controller: adoption, revisions, scaling, rolling updates, progress.

Source: pkg/controller/deployment/{deployment_controller,sync,rolling,recreate,progress}.go of Kubernetes
1.36, function by function; `deployment_math` has what util/deployment_util.go computes. It acts on what it
has seen.
"""

import orjson

from splitter.kube.client import ApiError
from world import clock
from world.controllers import deployment_math as math
from world.controllers.loop import Controller, Informers, Key
from world.controllers.owners import claimed
from world.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, Raw, Ref
from world.pods import controller_of, controller_ref, owned_by
from world.selectors import selects

_DEADLINE_SLACK_S = 1.0


class Deployments(Controller):
    """Reconciles every Deployment."""

    def __init__(self, informers: Informers) -> None:
        super().__init__(informers)
        self._deployments = informers.of(DEPLOYMENTS)
        self._replica_sets = informers.of(REPLICA_SETS)
        self._pods = informers.of(PODS)
        self._deployments.on_change(self._deployment_changed)
        self._replica_sets.on_change(self._replica_set_changed)
        self._pods.on_change(self._pod_changed)

    def _deployment_changed(self, old: Raw | None, new: Raw | None) -> None:
        metadata = (new or old or {})["metadata"]
        self.enqueue((metadata["namespace"], metadata["name"]))

    def _replica_set_changed(self, old: Raw | None, new: Raw | None) -> None:
        for raw in (old, new):
            if (
                raw is not None
                and (owner := controller_of(raw)) is not None
                and owner["kind"] == "Deployment"
            ):
                self.enqueue((raw["metadata"]["namespace"], owner["name"]))
        if new is not None and controller_of(new) is None:  # an orphan: whoever selects it may adopt it
            for (namespace, name), raw in self._deployments.seen.items():
                if namespace == new["metadata"]["namespace"] and selects(raw["spec"]["selector"], new):
                    self.enqueue((namespace, name))

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        """Look at a Deployment that recreates when one of its pods is gone."""
        if new is not None or old is None or (owner := controller_of(old)) is None:
            return
        namespace = old["metadata"]["namespace"]
        parent = self._replica_sets.seen.get((namespace, owner["name"]))
        if parent is not None and (above := controller_of(parent)) is not None:
            self.enqueue((namespace, above["name"]))

    async def sync(self, key: Key) -> None:
        """Do one reconcile (syncDeployment)."""
        seen = self._deployments.seen.get(key)
        if seen is None:
            return
        one = orjson.loads(orjson.dumps(seen))
        sets = await claimed(self, REPLICA_SETS, self._replica_sets.of(key[0]), one, DEPLOYMENTS)
        sync = _Sync(self, one, sets)
        if "deletionTimestamp" in one["metadata"]:
            await sync.write_status(progress=False)
            return
        await sync.check_paused()
        if one["spec"].get("paused") or await sync.is_scaling_event():
            await sync.scale_only()
        elif one["spec"]["strategy"]["type"] == "Recreate":
            pods = [pod for pod in self._pods.of(key[0]) if any(owned_by(pod, math.uid(rs)) for rs in sets)]
            await sync.recreate(pods)
        else:
            await sync.roll()


class _Sync:
    """One reconcile of one Deployment: `one` is a copy, changed as the controller changes its own."""

    def __init__(self, controller: Deployments, one: Raw, sets: list[Raw]) -> None:
        self._controller = controller
        self._one = one
        self._sets = sorted(sets, key=math.age)
        self._new = math.newest(one, self._sets)
        self._old = [rs for rs in self._sets if self._new is None or math.uid(rs) != math.uid(self._new)]

    @property
    def _all(self) -> list[Raw]:
        return [*self._old, *([self._new] if self._new is not None else [])]

    @property
    def _wanted(self) -> int:
        wanted: int = self._one["spec"]["replicas"]
        return wanted

    # --- writes -----------------------------------------------------------------------------------

    async def _update_status(self) -> None:
        await self._controller.update(DEPLOYMENTS, self._one, "status")

    async def _scale(self, rs: Raw, size: int, *, force: bool = False) -> bool:
        """Scale a ReplicaSet (scaleReplicaSet); its annotations alone are written only if forced."""
        there = rs["spec"]["replicas"]
        if there == size and not force:
            return False
        noted = math.counts_noted(self._one)
        annotations = rs["metadata"].get("annotations") or {}
        if there == size and noted.items() <= annotations.items():
            return False
        metadata = {**rs["metadata"], "annotations": {**annotations, **noted}}
        changed = {**rs, "metadata": metadata, "spec": {**rs["spec"], "replicas": size}}
        self._take(await self._controller.update(REPLICA_SETS, changed))
        return bool(there != size)

    def _take(self, rs: Raw) -> None:
        """Go on with what an update has answered."""
        if self._new is not None and math.uid(rs) == math.uid(self._new):
            self._new = rs
        self._old = [rs if math.uid(one) == math.uid(rs) else one for one in self._old]

    # --- revisions --------------------------------------------------------------------------------

    async def sync_revision(self, *, create: bool) -> None:
        """Write the revision of the newest ReplicaSet, which is created if it may be (getNewReplicaSet)."""
        revision = max([math.revision(rs) for rs in self._old], default=0) + 1
        if self._new is None:
            if create:
                await self._create(revision)
            return
        annotations = math.annotated(self._one, self._new, revision)
        ready_s = self._one["spec"].get("minReadySeconds", 0)
        changed = annotations != (self._new["metadata"].get("annotations") or {})
        if changed or self._new["spec"].get("minReadySeconds", 0) != ready_s:
            metadata = {**self._new["metadata"], "annotations": annotations}
            spec = {**self._new["spec"], **({"minReadySeconds": ready_s} if ready_s else {})}
            self._take(
                await self._controller.update(REPLICA_SETS, {**self._new, "metadata": metadata, "spec": spec})
            )
            return
        needs_update = self._set_revision(annotations[math.REVISION])
        if math.has_deadline(self._one) and math.condition(self._one, "Progressing") is None:
            self._progressing("True", "FoundNewReplicaSet")
            needs_update = True
        if needs_update:
            await self._update_status()

    def _set_revision(self, revision: str) -> bool:
        annotations = self._one["metadata"].setdefault("annotations", {})
        changed: bool = annotations.get(math.REVISION) != revision
        annotations[math.REVISION] = revision
        return changed

    def _progressing(self, status: str, reason: str) -> None:
        math.set_condition(self._one.setdefault("status", {}), "Progressing", status, reason)

    async def _create(self, revision: int) -> None:
        status = self._one.setdefault("status", {})
        made = math.replica_set(self._one, status.get("collisionCount", 0))
        made["spec"]["replicas"] = math.new_size(self._one, self._old, 0)
        made["metadata"]["annotations"] = math.annotated(self._one, made, revision) | math.counts_noted(
            self._one
        )
        made["metadata"]["ownerReferences"] = [controller_ref(self._one)]
        namespace = self._one["metadata"]["namespace"]
        await self._controller.sent()
        exists = False
        try:
            self._new = self._controller.objects.create(
                REPLICA_SETS, namespace, made, user=self._controller.user
            )
        except ApiError as error:
            if error.reason != "AlreadyExists":
                if math.has_deadline(self._one):
                    self._progressing("False", "ReplicaSetCreateError")
                    await self._update_status()
                raise
            there = self._controller.objects.get(Ref(REPLICA_SETS, namespace, made["metadata"]["name"]))
            owner, template = controller_of(there), there["spec"]["template"]
            mine = owner is not None and owner["uid"] == math.uid(self._one)
            if not mine or not math.is_same_template(template, self._one["spec"]["template"]):
                status["collisionCount"] = status.get("collisionCount", 0) + 1
                await self._update_status()
                raise
            self._new, exists = there, True
        needs_update = self._set_revision(str(revision))
        if not exists and math.has_deadline(self._one):
            self._progressing("True", "NewReplicaSetCreated")
            needs_update = True
        if needs_update:
            await self._update_status()

    # --- pausing and scaling ------------------------------------------------------------------------

    async def check_paused(self) -> None:
        """Say that it is paused or resumed (checkPausedConditions); its progress is not judged meanwhile."""
        if not math.has_deadline(self._one):
            return
        status = self._one.setdefault("status", {})
        there = math.condition(self._one, "Progressing")
        reason = there["reason"] if there is not None else ""
        paused = bool(self._one["spec"].get("paused"))
        if reason == "ProgressDeadlineExceeded" or paused is (reason == "DeploymentPaused"):
            return
        math.set_condition(
            status, "Progressing", "Unknown", "DeploymentPaused" if paused else "DeploymentResumed"
        )
        await self._update_status()

    async def is_scaling_event(self) -> bool:
        """Whether an active ReplicaSet bears another desired count than the Deployment's (isScalingEvent)."""
        await self.sync_revision(create=False)
        desired = [math.noted(rs, math.DESIRED) for rs in self._all if rs["spec"]["replicas"] > 0]
        return any(count is not None and count != self._wanted for count in desired)

    async def scale_only(self) -> None:
        """Share out what was scaled, and roll nothing (sync)."""
        await self.sync_revision(create=False)
        await self._share_out()
        if self._one["spec"].get("paused"):
            await self._clean_up()
        await self.write_status(progress=False)

    async def _share_out(self) -> None:
        only = math.active_or_latest(self._new, self._old)
        if only is not None:
            if only["spec"]["replicas"] != self._wanted:
                await self._scale(only, self._wanted)
            return
        if self._new is not None and math.is_saturated(self._one, self._new):
            for rs in [rs for rs in self._old if rs["spec"]["replicas"] > 0]:
                await self._scale(rs, 0)
            return
        if self._one["spec"]["strategy"]["type"] == "RollingUpdate":
            by_uid = {math.uid(rs): rs for rs in self._all}
            for uid, size in math.proportions(self._one, self._all).items():
                await self._scale(by_uid[uid], size, force=True)

    # --- rolling ----------------------------------------------------------------------------------

    async def roll(self) -> None:
        """Do one step of a rolling update (rolloutRolling)."""
        await self.sync_revision(create=True)
        if (
            not await self._grow_new()
            and not await self._shrink_old()
            and math.is_complete(self._one, self._one.get("status") or {})
        ):
            await self._clean_up()
        await self.write_status(progress=True)

    async def _grow_new(self) -> bool:
        assert self._new is not None
        size = self._new["spec"]["replicas"]
        if size == self._wanted:
            return False
        wanted = self._wanted if size > self._wanted else math.new_size(self._one, self._all, size)
        return await self._scale(self._new, wanted)

    async def _shrink_old(self) -> bool:
        """Take pods from old ReplicaSets: those that are not available first (reconcileOldReplicaSets)."""
        assert self._new is not None
        active = sorted((rs for rs in self._old if rs["spec"]["replicas"] > 0), key=math.age)
        if not active:
            return False
        total = sum(rs["spec"]["replicas"] for rs in self._all)
        least = self._wanted - math.fenceposts(self._one)[1]
        unavailable = self._new["spec"]["replicas"] - math.count(self._new, "availableReplicas")
        most = total - least - unavailable
        if most <= 0:
            return False
        try:
            cleaned = await self._take_unhealthy(active, most)
            return await self._take_spare(active, least) + cleaned > 0
        except ApiError:
            return False  # as there: the next reconcile goes on

    async def _take_unhealthy(self, active: list[Raw], most: int) -> int:
        taken = 0
        for rs in active:
            size = rs["spec"]["replicas"]
            down = min(most - taken, size - math.count(rs, "availableReplicas"))
            if taken >= most or down == 0:
                continue
            if size - down > size:
                raise ApiError(0, "", "more are available than are wanted")
            await self._scale(rs, size - down)
            taken += down
        return taken

    async def _take_spare(self, active: list[Raw], least: int) -> int:
        there = {math.uid(rs): rs for rs in self._old}
        now = [there[math.uid(rs)] for rs in active]
        spare = sum(math.count(rs, "availableReplicas") for rs in (*now, self._new) if rs is not None) - least
        taken = 0
        for rs in now:
            down = min(rs["spec"]["replicas"], spare - taken)
            if down > 0:
                await self._scale(rs, rs["spec"]["replicas"] - down)
                taken += down
        return taken

    async def recreate(self, pods: list[Raw]) -> None:
        """Take all old pods away before the first new one comes (rolloutRecreate)."""
        await self.sync_revision(create=False)
        scaled = [await self._scale(rs, 0) for rs in list(self._old) if rs["spec"]["replicas"] > 0]
        own = math.uid(self._new) if self._new is not None else ""
        phases = (pod.get("status", {}).get("phase") for pod in pods if not owned_by(pod, own))
        runs = any(math.count(rs, "replicas") for rs in self._old) or any(
            phase not in {"Failed", "Succeeded"} for phase in phases
        )
        if not any(scaled) and not runs:
            if self._new is None:
                await self.sync_revision(create=True)
            assert self._new is not None
            await self._scale(self._new, self._wanted)
            if math.is_complete(self._one, self._one.get("status") or {}):
                await self._clean_up()
        await self.write_status(progress=True)

    async def _clean_up(self) -> None:
        """Delete old ReplicaSets that are more than the history may have (cleanupDeployment)."""
        alive = [rs for rs in self._old if "deletionTimestamp" not in rs["metadata"]]
        over = len(alive) - self._one["spec"].get("revisionHistoryLimit", 10)
        for rs in sorted(alive, key=math.revision)[: max(0, over)]:
            seen = math.count(rs, "observedGeneration") >= rs["metadata"]["generation"]
            if seen and not math.count(rs, "replicas") and not rs["spec"]["replicas"]:
                await self._controller.delete(REPLICA_SETS, rs)

    # --- status -----------------------------------------------------------------------------------

    async def write_status(self, *, progress: bool) -> None:
        """Write what was seen, if it is new; `progress`: judge it, too (syncRolloutStatus)."""
        status = math.status_of(self._one, self._all, self._new)
        if progress:
            math.judge_progress(self._one, status)
            math.set_failure(status, self._new, self._all)
        if status == (self._one.get("status") or {}):
            if progress:
                self._look_again()
            return
        self._one["status"] = status
        await self._update_status()

    def _look_again(self) -> None:
        """Come back when the progress deadline is over (requeueStuckDeployment)."""
        there, status = math.condition(self._one, "Progressing"), self._one["status"]
        if not math.has_deadline(self._one) or there is None or there["reason"] == "ProgressDeadlineExceeded":
            return
        if math.is_complete(self._one, status):
            return
        passed_s = (clock.now() - clock.instant(there["lastUpdateTime"])).total_seconds()
        after_s = self._one["spec"]["progressDeadlineSeconds"] - passed_s
        metadata = self._one["metadata"]
        self._controller.enqueue(
            (metadata["namespace"], metadata["name"]), max(0.0, after_s) + _DEADLINE_SLACK_S
        )
