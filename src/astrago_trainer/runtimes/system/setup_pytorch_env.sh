# Environment of a PyTorch process: what the Trainer sets (PET_*) under the names PyTorch reads.
# Delivered in /shared, by the ConfigMap pytorch-pet-setup or the runtime's init container `setup`,
# and sourced by bash before user code.

# --- handover.sh
# Makes every signal reach the training code. Must be the first command of a `bash -c` string.
# First pass: forward.py, which lies beside this file, takes the place of this shell, runs the same
# string as its child and passes signals on. Second pass: the traps of that child.
# The mark is never taken back, so that a string can be started again once only, whatever it holds.
if [ -n "${BASH_EXECUTION_STRING:-}" ] && [ -z "${ASTRAGO_SIGNALS:-}" ]; then
  astrago_python=$(type -P python3 || type -P python || :)
  astrago_forward=${BASH_SOURCE[0]%/*}/forward.py
  if [ -n "$astrago_python" ] && [ -r "$astrago_forward" ]; then
    export ASTRAGO_SIGNALS=forwarded
    astrago_command=("$astrago_python" -IS "$astrago_forward")
    astrago_traps='(^|[[:space:];&|({])trap[[:space:]]'
    if [[ $BASH_EXECUTION_STRING =~ $astrago_traps ]]; then astrago_command+=(--own-traps); fi
    astrago_command+=("$BASH")
    if shopt -qo pipefail; then astrago_command+=(-o pipefail); fi
    if shopt -q login_shell; then astrago_command+=(-l); fi
    exec "${astrago_command[@]}" "-${-//[cims]/}c" "$BASH_EXECUTION_STRING" "$0" "$@"
  fi
  echo "Signals do not reach the training code, which a stop then kills after its grace period:" \
    "it takes python3 or python, found '$astrago_python', and the file $astrago_forward."
elif [ -n "${BASH_EXECUTION_STRING:-}" ]; then
  # After the command that was interrupted nothing else is started. Its exit code is kept; but 0 with
  # commands still to come would call a stopped job finished, so that is 128+n.
  astrago_stop() {
    wait # what runs in the background got the signal too
    if [ "$1" -ne 0 ]; then exit "$1"; fi
    set -T # for functions and subshells too, whichever comes next
    # shellcheck disable=SC2064 # the number is meant to be put in now
    trap "exit $2" DEBUG
  }
  trap 'astrago_stop "$?" 129' HUP
  trap 'astrago_stop "$?" 130' INT
  trap 'astrago_stop "$?" 131' QUIT
  trap 'astrago_stop "$?" 143' TERM
  trap : USR1 USR2 # meant for a program that takes the place of this shell
fi
# --- end of handover.sh

echo '🔧 PyTorch 분산 학습 환경 설정 시작 (PyTorch setup started)'
astrago_missing=''
for astrago_name in PET_NODE_RANK PET_NNODES PET_MASTER_ADDR PET_MASTER_PORT; do
  if [ -z "${!astrago_name:-}" ]; then astrago_missing="$astrago_missing $astrago_name"; fi
done
# A runtime without mlPolicy.torch sets none of them, which suits a single node.
if [ "${astrago_missing// /}" = PET_NODE_RANKPET_NNODESPET_MASTER_ADDRPET_MASTER_PORT ] &&
  [ "${JOB_COMPLETION_INDEX:-0}" = 0 ]; then
  astrago_missing=''
fi
if [ -n "$astrago_missing" ]; then
  echo "❌ PyTorch 환경변수 설정 실패 (PyTorch setup failed): not set:$astrago_missing. The Trainer sets" \
    "them when the runtime has mlPolicy.torch and the TrainJob has spec.trainer."
  exit 1
fi
# One process per node, whatever PET_NPROC_PER_NODE says: without a GPU the Trainer puts the number
# of CPUs there, so it does not tell how the user starts. torchrun needs no exception: its agent
# reads PET_* alone, and it sets every name below anew for the workers it starts.
export RANK="${PET_NODE_RANK:-0}" WORLD_SIZE="${PET_NNODES:-1}"
export MASTER_ADDR="${PET_MASTER_ADDR:-localhost}" MASTER_PORT="${PET_MASTER_PORT:-29500}"
export LOCAL_RANK="${PET_LOCAL_RANK:-0}" LOCAL_WORLD_SIZE=1
# WARN is silent until something breaks and then says why; INFO is a hundred lines per rank and
# start. A job that wants them sets NCCL_DEBUG itself.
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"
echo '✅ PyTorch 환경변수 설정 완료! (PyTorch setup done)'
echo "  - RANK: $RANK"
echo "  - WORLD_SIZE: $WORLD_SIZE"
echo "  - LOCAL_RANK: $LOCAL_RANK"
echo "  - MASTER_ADDR: $MASTER_ADDR"
echo "  - MASTER_PORT: $MASTER_PORT"
