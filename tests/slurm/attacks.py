"""What a hostile user brings along: programs that run in jobs, and words that others might take for their own.

Texts only; test_mps_hostile.py puts them into a cluster and says what must come of it.
"""

from __future__ import annotations

ATTACKS_DIR, CANARY, PWNED = "/attack", "/canary", "/pwned"
SECRET = "the word that only root may read"
PAYLOAD = f"$(touch {PWNED}/a)`touch {PWNED}/b`;touch {PWNED}/c\ntouch {PWNED}/d\nexport PWNED=1\n%s%n"
"""What a shell, a format, a record or Slurm's own language of a task prolog might take for its own."""

PLANT = f"""\
import os, random, socket, sys
chance = random.Random(int(sys.argv[1]))
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
log = os.path.join(os.path.dirname(pipe), "log")
kinds = [
    lambda path: os.symlink("{CANARY}/secret", path),
    lambda path: os.symlink("{CANARY}", path),
    lambda path: os.symlink("/", path),
    lambda path: os.mkfifo(path),
    lambda path: os.link("{CANARY}/open", path),
    lambda path: socket.socket(socket.AF_UNIX).bind(path),
    lambda path: os.makedirs(path + "/a/b/c"),
    lambda path: os.close(os.open(path, os.O_CREAT, 0)),
]
for folder in (pipe, log):
    for name in ("control", "control_lock", "control_privileged", "log", "control.log", "server.log",
                 "nvidia-cuda-mps-control.pid", "-rf", "a\\nb", "{PAYLOAD[:20]}".replace("/", "_")):
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            os.unlink(path)
        try:
            chance.choice(kinds)(path)
        except OSError:
            os.mkdir(path, 0)
"""
FILL = """\
import os
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
for folder in (pipe, os.path.join(os.path.dirname(pipe), "log")):
    os.chdir(folder)
    depth = 0
    try:
        while depth < 10000:
            os.mkdir("d")
            os.chdir("d")
            depth += 1
    except OSError:
        pass
    assert depth < 10000, "no limit"
    os.chmod(".", 0)
    os.chdir(folder)
    try:
        os.rename("d", "e")
        with open("full", "wb") as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError:
        pass
"""
STAY = """\
import os, sys, time
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
for number in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.chdir(pipe)
        held = [os.open("held%d" % number, os.O_CREAT | os.O_RDWR), os.open(".", os.O_RDONLY)]
        if number == 1:
            script = 'mount -t tmpfs none "$1" && mkdir "$1/mine" && cd "$1" && exec sleep 300'
            os.execvp("unshare", ["unshare", "-Urm", "sh", "-c", script, "sh", pipe])
        end = time.time() + 300
        turn = 0
        while time.time() < end:
            turn += 1
            for base in (".", pipe):
                for act in (
                    lambda: os.mkdir(base + "/r%d" % number),
                    lambda: os.symlink("/canary", base + "/r%d/l" % number),
                    lambda: os.rename(base + "/r%d" % number, base + "/s%d.%d" % (number, turn)),
                    lambda: os.symlink("/canary", base + "/r%d" % number),
                    lambda: os.unlink(base + "/r%d" % number),
                ):
                    try:
                        act()
                    except OSError:
                        pass
        os._exit(0)
"""
LOCK = """\
import fcntl, os, sys, time
if os.fork():
    sys.exit(0)
os.setsid()
null = os.open("/dev/null", os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(null, stream)
held = {}
end = time.time() + 300
while time.time() < end:
    for above, folders, files in os.walk("/run/hybridgpu"):
        for path in [above] + [os.path.join(above, name) for name in files]:
            try:
                seen = os.stat(path)
                if (seen.st_dev, seen.st_ino) not in held:
                    held[seen.st_dev, seen.st_ino] = file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                pass
    for job in os.listdir("/run/hybridgpu/mps") if os.path.isdir("/run/hybridgpu/mps") else ():
        try:
            path = "/run/hybridgpu/mps/" + job
            fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
    time.sleep(0.005)
"""
INJECT = """\
import ctypes, os, sys
pid, program = int(sys.argv[1]), sys.argv[2].encode() + b"\\0"
call = ctypes.CDLL(None, use_errno=True).ptrace
call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
def trace(request, data=0):
    if call(request, pid, 0, data) == -1:
        raise OSError(ctypes.get_errno(), "ptrace %d" % request)
trace(16)
os.waitpid(pid, 0x40000000)
registers = (ctypes.c_ulong * 27)()
trace(12, ctypes.addressof(registers))
stack = (registers[19] - 4096) & ~15
program += bytes(-len(program) % 8)
memory = os.open("/proc/%d/mem" % pid, os.O_RDWR)
os.pwrite(memory, program + stack.to_bytes(8, "little") + bytes(8), stack)
os.pwrite(memory, b"\\x0f\\x05\\x0f\\x0b", registers[16])
registers[10], registers[15] = 59, 2**64 - 1
registers[14], registers[13], registers[12] = stack, stack + len(program), stack + len(program) + 8
trace(13, ctypes.addressof(registers))
trace(17)
"""
CHAIN = """\
#include <signal.h>
#include <unistd.h>
int main(void)
{
    for (int number = 1; number < 65; number++)
        signal(number, SIG_IGN);
    for (int chains = 0; chains < 4 && fork(); chains++)
        ;
    for (;;)
        if (fork() > 0)
            _exit(0);
}
"""
"""Ends and goes on in a child, for ever: whoever looks for its pid comes too late."""

DISGUISE = """\
import os, sys, time
job = sys.argv[1]
for title, context in (("slurmstepd: [%s.extern]" % job, ""), ("sleep", "prolog_slurmd")):
    if os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.execve("/bin/sleep", [title, "300"], {"SLURM_JOB_ID": job, "SLURM_SCRIPT_CONTEXT": context})
"""
SABOTAGE = """\
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    end = time.time() + 300
    while time.time() < end:
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    if file.read().endswith(b"nvidia-cuda-mps-control\\0-f\\0"):
                        os.kill(int(pid), int(sys.argv[1]))
            except OSError:
                pass
    os._exit(0)
"""
SCRIPTS = {
    "sabotage": SABOTAGE,
    "plant": PLANT,
    "fill": FILL,
    "stay": STAY,
    "lock": LOCK,
    "inject": INJECT,
    "disguise": DISGUISE,
}

SPANK = """\
#include <stdlib.h>
extern int spank_job_control_setenv(void *, const char *, const char *, int);
const char plugin_name[] = "hostile", plugin_type[] = "spank";
const unsigned int plugin_version = %d, spank_plugin_version = 1;
int slurm_spank_init_post_opt(void *spank, int argc, char **argv)
{
    const char *value = getenv("HOSTILE");
    return value ? spank_job_control_setenv(spank, "HOSTILE", value, 1) : 0;
}
"""
"""What any user could do with libslurm: give his job a variable of his choice, named SPANK_ and more."""
