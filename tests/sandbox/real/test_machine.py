"""What one real machine is told, before anything of it runs."""

import hashlib
import io
import json
import tarfile
import tomllib
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from lab.sandbox.real import images
from lab.sandbox.real.machine import MOST, Machine
from lab.sandbox.real.world import GATEWAY, PODS, PREFIX

SPOT = {"key": "spot", "value": "true", "effect": "NoSchedule"}


class TestAddresses:
    """Every machine, and every pod, has an address of its own."""

    def test_are_all_different(self) -> None:
        """No two machines share an address or the addresses of their pods, and none has the gateway's."""
        machines = [Machine(number, f"m{number}") for number in range(1, MOST + 1)]
        assert len({machine.address for machine in machines} | {GATEWAY}) == MOST + 1
        assert len({machine.pods for machine in machines}) == MOST

    @pytest.mark.parametrize("number", [1, MOST])
    def test_lie_in_the_world(self, number: int) -> None:
        """The first machine and the last are within reach of the gateway, their pods within reach of all."""
        machine = Machine(number, "m")
        assert ip_address(machine.address) in ip_network(f"{GATEWAY}/{PREFIX}", strict=False)
        assert ip_network(machine.pods).subnet_of(ip_network(PODS))  # type: ignore[arg-type]


class TestFiles:
    """The files say what they were asked to say, in the form that their reader takes."""

    def test_tell_of_the_machine(self) -> None:
        """Labels, taints and addresses reach the kubelet and kube-proxy."""
        files = Machine(7, "real-spot-0", {"a/b": "c", "d": "e"}, [SPOT]).files()
        assert files["labels"] == "a/b=c,d=e"
        kubelet = json.loads(files["kubelet.yaml"])
        assert kubelet["registerWithTaints"] == [SPOT]
        assert kubelet["address"] == "10.77.0.17"
        assert json.loads(files["kube-proxy.yaml"])["hostnameOverride"] == "real-spot-0"
        [plugin] = json.loads(files["cni/10-pods.conflist"])["plugins"]
        assert plugin["ipam"]["ranges"] == [[{"subnet": "10.78.7.0/24"}]]

    def test_agree_with_one_another(self) -> None:
        """The kubelet asks the containerd that listens, and that has the image of pods' first container."""
        files = Machine(1, "m").files()
        containerd = tomllib.loads(files["containerd.toml"])
        endpoint = json.loads(files["kubelet.yaml"])["containerRuntimeEndpoint"]
        assert endpoint == f"unix://{containerd['grpc']['address']}"
        pinned = containerd["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]
        assert pinned["sandbox"] == images.PAUSE


class TestImages:
    """One program becomes images that a container runtime takes."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> dict[str, bytes]:
        """Return the files of the images of a tiny program."""
        program = tmp_path / "guest"
        program.write_bytes(b"#!/bin/true")
        images.write(tmp_path / "images.tar", program)
        with tarfile.open(tmp_path / "images.tar") as tar:
            return {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]

    def test_are_whole(self, files: dict[str, bytes]) -> None:
        """Every digest that is named is there, and is that of its content."""
        blobs = {name.removeprefix("blobs/sha256/"): blob for name, blob in files.items() if "sha256" in name}
        assert all(hashlib.sha256(blob).hexdigest() == name for name, blob in blobs.items())
        for manifest in json.loads(files["index.json"])["manifests"]:
            inner = json.loads(blobs[manifest["digest"].removeprefix("sha256:")])
            for part in (inner["config"], *inner["layers"]):
                assert len(blobs[part["digest"].removeprefix("sha256:")]) == part["size"]

    def test_have_their_names(self, files: dict[str, bytes]) -> None:
        """They are called as pods ask for them."""
        named = [one["annotations"] for one in json.loads(files["index.json"])["manifests"]]
        assert [one["io.containerd.image.name"] for one in named] == [images.PAUSE, *images.WEB]

    def test_start_the_program(self, files: dict[str, bytes]) -> None:
        """What an image starts leads to the program, which can be run."""
        manifest = json.loads(files["index.json"])["manifests"][1]["digest"]
        inner = json.loads(files[f"blobs/sha256/{manifest.removeprefix('sha256:')}"])
        config = json.loads(files[f"blobs/sha256/{inner['config']['digest'].removeprefix('sha256:')}"])
        [entry] = config["config"]["Entrypoint"]
        layer = files[f"blobs/sha256/{inner['layers'][0]['digest'].removeprefix('sha256:')}"]
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            link = tar.getmember(entry.removeprefix("/"))
            program = tar.getmember(f"bin/{link.linkname}")
        assert program.mode & 0o111
        assert program.size == len(b"#!/bin/true")

    def test_are_the_same_every_time(self, tmp_path: Path, files: dict[str, bytes]) -> None:
        """The same program gives the same bytes."""
        images.write(tmp_path / "again.tar", tmp_path / "guest")
        assert (tmp_path / "again.tar").read_bytes() == (tmp_path / "images.tar").read_bytes()
        assert files
