# Environment of a PyTorch process: what the Trainer sets (PET_*) under the names PyTorch reads.
# Delivered in the ConfigMap pytorch-pet-setup, mounted at /shared, sourced by bash before user code.

# --- signals.sh
# Makes SIGTERM reach the training code. Must be the first command of a `bash -c` string.
# bash as process 1 of a container ignores SIGTERM, and runs no trap while a command is in the
# foreground. So the first pass starts the same string again as a child in its own process group,
# passes TERM and INT on to that group, and leaves with the child's exit code.
# The mark is never taken back, so that a string can be started again once only, whatever it holds.
if [ -n "${BASH_EXECUTION_STRING:-}" ] && [ -z "${ASTRAGO_SIGNALS:-}" ]; then
  export ASTRAGO_SIGNALS=forwarded
  astrago_child='' astrago_early='' astrago_again=''
  astrago_forward() {
    astrago_again=yes
    if [ -z "$astrago_child" ]; then astrago_early=$1; return; fi
    kill -s "$1" -- "-$astrago_child" 2>/dev/null || :
  }
  trap 'astrago_forward TERM' TERM
  trap 'astrago_forward INT' INT
  astrago_options=("-${-//[cims]/}c")
  if shopt -qo pipefail; then astrago_options=(-o pipefail "${astrago_options[@]}"); fi
  if shopt -q login_shell; then astrago_options=(-l "${astrago_options[@]}"); fi
  set -m # gives the child a process group, and leaves SIGINT and standard input as they are
  "$BASH" "${astrago_options[@]}" "$BASH_EXECUTION_STRING" "$0" "$@" &
  astrago_child=$!
  set +m
  if [ -n "$astrago_early" ]; then astrago_forward "$astrago_early"; fi
  # A signal ends `wait` early; asked again, it gives the child's own code, even after its end.
  while
    astrago_again=''
    wait "$astrago_child"
    astrago_code=$?
    [ -n "$astrago_again" ]
  do :; done
  exit "$astrago_code"
elif [ -n "${BASH_EXECUTION_STRING:-}" ]; then
  # Second pass: after the command that was interrupted nothing else is started. Its exit code is
  # kept; but 0 with commands still to come would call a stopped job finished, so that is 128+n.
  # (A signal in the instant between two commands of the shell is acted on after the later one.)
  astrago_stop() {
    wait # what runs in the background got the signal too
    if [ "$1" -ne 0 ]; then exit "$1"; fi
    # shellcheck disable=SC2064 # the number is meant to be put in now
    trap "exit $2" DEBUG
  }
  trap 'astrago_stop "$?" 143' TERM
  trap 'astrago_stop "$?" 130' INT
fi
# --- end of signals.sh

echo 'PyTorch setup started'
astrago_missing=''
for astrago_name in PET_NODE_RANK PET_NNODES PET_MASTER_ADDR PET_MASTER_PORT; do
  if [ -z "${!astrago_name:-}" ]; then astrago_missing="$astrago_missing $astrago_name"; fi
done
if [ -n "$astrago_missing" ]; then
  echo "PyTorch setup failed: not set:$astrago_missing. The Trainer sets them when the runtime has" \
    "mlPolicy.torch and the TrainJob has spec.trainer."
  exit 1
fi
# One process per node, whatever PET_NPROC_PER_NODE says: without a GPU the Trainer puts the number
# of CPUs there, so it does not tell how the user starts. torchrun needs no exception: its agent
# reads PET_* alone, and it sets every name below anew for the workers it starts.
export RANK="$PET_NODE_RANK" WORLD_SIZE="$PET_NNODES"
export MASTER_ADDR="$PET_MASTER_ADDR" MASTER_PORT="$PET_MASTER_PORT"
export LOCAL_RANK=0 LOCAL_WORLD_SIZE=1
# WARN is silent until something breaks and then says why; INFO is a hundred lines per rank and
# start. A job that wants them sets NCCL_DEBUG itself.
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"
echo 'PyTorch setup done'
echo "RANK: $RANK"
echo "WORLD_SIZE: $WORLD_SIZE"
echo "LOCAL_RANK: $LOCAL_RANK"
echo "MASTER_ADDR: $MASTER_ADDR"
echo "MASTER_PORT: $MASTER_PORT"
