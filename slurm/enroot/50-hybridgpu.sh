#!/bin/sh
# /etc/enroot/hooks.d/50-hybridgpu.sh: enroot starts a container with the environment that its own files make, and no
# more. This adds what the task prolog gave the task. What is there already stays: it was named on the command line.
set -eu

give() {
    [ -z "$2" ] || grep -q "^$1=" "$ENROOT_ENVIRON" || printf '%s=%s\n' "$1" "$2" >>"$ENROOT_ENVIRON"
}

give CUDA_MPS_PIPE_DIRECTORY "${CUDA_MPS_PIPE_DIRECTORY-}"
give CUDA_MPS_PINNED_DEVICE_MEM_LIMIT "${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT-}"
give CUDA_MPS_ACTIVE_THREAD_PERCENTAGE "${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE-}"
case ${CUDA_VISIBLE_DEVICES-} in
    GPU-* | MIG-*) give CUDA_VISIBLE_DEVICES "$CUDA_VISIBLE_DEVICES" ;; # numbers may count other devices in there
esac
