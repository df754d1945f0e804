"""A live Kubernetes API server with an etcd of its own: no node, no controller, no scheduler, nothing it could change.

Both run in namespaces of their own: nothing listens on the machine's loopback, any number of servers live side by side
on the same ports, and the kernel ends them with whoever started them, however that ends.
"""

from __future__ import annotations

import shutil
import ssl
from types import TracebackType
from typing import Self

from testbed.kubernetes.client import Api, Connection, Refused
from testbed.kubernetes.programs import API_SERVER, ETCD, Programs, cache
from testbed.slurm.namespace import Broken, Namespace, attempts

ADDRESS, PORT = "127.0.0.1", 6443
STORE = "http://127.0.0.1:2379"
TOKEN = "testbed"
CERTIFICATES = "/run/kubernetes"
TOKENS = "/etc/kubernetes/tokens.csv"
NULL = (1, 3)
READY_SECONDS = 60

RUN_ETCD = (
    "etcd",
    "--data-dir=/var/lib/etcd",
    f"--listen-client-urls={STORE}",
    f"--advertise-client-urls={STORE}",
    "--listen-peer-urls=http://127.0.0.1:2380",
    "--unsafe-no-fsync",
)
RUN_API_SERVER = (
    "kube-apiserver",
    f"--etcd-servers={STORE}",
    f"--bind-address={ADDRESS}",
    f"--advertise-address={ADDRESS}",
    "--endpoint-reconciler-type=none",
    f"--secure-port={PORT}",
    f"--cert-dir={CERTIFICATES}",
    f"--service-account-key-file={CERTIFICATES}/apiserver.key",
    f"--service-account-signing-key-file={CERTIFICATES}/apiserver.key",
    "--service-account-issuer=https://kubernetes.default.svc",
    f"--token-auth-file={TOKENS}",
    "--authorization-mode=RBAC",
    "--disable-admission-plugins=ServiceAccount",
)
"""The server makes itself a certificate, and signs service accounts with its key. Pods need no service account."""


class ApiServer:
    """A running server; use it as a context manager. `api` speaks to it as an administrator.

    Raises Broken, with the logs, where it does not come up.
    """

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        root = cache() / "root"
        for folder in ("mnt", "proc", "sys"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        self.inside = Namespace(root)
        self._clients: list[Api] = []
        self.api: Api

    def __enter__(self) -> Self:
        self.inside.__enter__()
        try:
            self._furnish()
            self.inside.start(ETCD, RUN_ETCD)
            self.inside.start(API_SERVER, RUN_API_SERVER)
            self.api = self.client(TOKEN)
            self._wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is not None:
            problem.add_note(self.logs())
        self.close()

    def close(self) -> None:
        """End both programs, by the kernel, and hang up."""
        for each in self._clients:
            each.close()
        self.inside.close()

    def _furnish(self) -> None:
        """The programs and what they read, in a file system that was empty and is gone with the server."""
        self.inside.device("/dev/null", *NULL)
        self.inside.folder("/tmp", mode=0o1777)
        self.inside.write("/etc/hosts", "127.0.0.1 localhost\n")
        self.inside.write(TOKENS, f"{TOKEN},admin,1,system:masters\n", mode=0o600)
        self.inside.folder("/usr/bin")
        for name in (ETCD, API_SERVER):
            shutil.copy(self.programs.path(name), self.inside.path(f"/usr/bin/{name}"))

    def client(self, token: str) -> Api:
        """Who speaks to the server with this token; call it once the server has made its certificate."""
        certificate = self.inside.path(f"{CERTIFICATES}/apiserver.crt")
        for _ in attempts(READY_SECONDS):
            self._alive()
            if certificate.exists():
                break
        context = ssl.create_default_context(cafile=str(certificate))
        network = self.inside.path("/").parent / "ns" / "net"
        self._clients.append(Api(Connection(network, ADDRESS, PORT, context), token))
        return self._clients[-1]

    def _wait_ready(self) -> None:
        """Return when the server says that it is ready, its own objects included."""
        said = ""
        for _ in attempts(READY_SECONDS):
            self._alive()
            try:
                said = self.api.request("GET", "/readyz")
            except (OSError, Refused) as problem:
                said = str(problem)
            if said == "ok":
                return
        raise Broken(f"not ready after {READY_SECONDS} s: {said}\n{self.logs()}")

    def _alive(self) -> None:
        for daemon in (ETCD, API_SERVER):
            status = self.inside.status(daemon)
            if status is not None:
                raise Broken(f"{daemon} ended with status {status}\n{self.logs()}")

    def logs(self) -> str:
        """The end of what each daemon has printed, for people."""
        return self.inside.logs()
