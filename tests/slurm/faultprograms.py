"""Programs that stand in place of the interpreter and the control program of hooks, to fail as asked. Texts only."""

from __future__ import annotations

from collections.abc import Mapping

PROGRAMS = "/opt/nvidia/bin"
CONTROL = f"{PROGRAMS}/nvidia-cuda-mps-control"
REAL = "/usr/bin/nvidia-cuda-mps-control"
FAULTS = "/faults"
HOOKS_CONF = f"""\
PYTHON=/usr/lib/hybridgpu-testbed/python
CONTROL={CONTROL}
START_SECONDS=3
QUIT_SECONDS=1
KILL_SECONDS=2
LOCK_SECONDS=8
WHOLE_SECONDS=25
"""
PYTHON = f"""\
#!/bin/sh
# Python that is killed a while after its start, where a test has asked for it: on this node, in this hook, once. One
# that has a file to write its environment to does so.
for hook in "$@"; do :; done
asked={FAULTS}/$SLURMD_NODENAME.$hook
if [ -n "$SLURMD_NODENAME" ] && [ -e "$asked" ] && /bin/mv "$asked" "$asked.taken" 2>/dev/null; then
    read -r delay <"$asked.taken"
    {{ /bin/sleep "$delay"; kill -9 $$; }} </dev/null >/dev/null 2>&1 &
fi
if [ -e "$asked.tell" ]; then /usr/bin/env -0 >"$asked.tell"; fi
exec /usr/bin/python3 "$@"
"""
STUBBORN = f"""\
#!/bin/sh
# A control daemon that ends neither on `quit` nor on SIGTERM, and has a child in a session of its own.
if [ "$1" = -f ]; then
    trap '' TERM
    setsid sleep 1000 &
    exec {REAL} -f
fi
read -r asked
if [ "$asked" = quit ]; then exec sleep 1000; fi
echo "$asked" | {REAL}
"""
COVERS: Mapping[str, str | None] = {
    "missing": None,
    "hanging": "#!/bin/sh\nexec sleep 1000\n",
    "stubborn": STUBBORN,
    "slow": f'#!/bin/sh\nif [ "$1" = -f ]; then sleep 0.4; fi\nexec {REAL} "$@"\n',
    "failing": "#!/bin/sh\necho no card >&2\nexit 3\n",
}
"""What may stand in place of the control program: None is an empty folder."""
