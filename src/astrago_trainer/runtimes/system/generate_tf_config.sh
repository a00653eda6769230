# Environment of a TensorFlow worker. Delivered in the ConfigMap tensorflow-tf-config-generator,
# mounted at /shared, sourced by bash before user code.

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

# --- tf_config.sh
# TF_CONFIG of this worker: all workers by their lasting host names, and which of them this one is.
# Reads NUM_WORKERS, else PET_NNODES, else 1; JOB_COMPLETION_INDEX, else the end of the host name;
# NAMESPACE (default), TF_PORT (2222). TF_ADDRESSES, host:port of each worker, goes before host names
# and port. Every value is checked, because the result is quoted text. All is said on one stream: a
# pod's log does not keep the order between two.
tf_fail() {
  printf '❌ TF_CONFIG 생성 실패 (TF_CONFIG generation failed): %s\n' "$1"
  exit 1
}
tf_number() {
  case $2 in
    '' | *[!0-9]* | 0[0-9]* | ??????*) tf_fail "$1 must be a number of at most 5 digits, not '$2'" ;;
  esac
}
tf_name() {
  case $2 in
    '' | *[!abcdefghijklmnopqrstuvwxyz0123456789-]*) tf_fail "$1 '$2' is no name of Kubernetes" ;;
  esac
}
echo '🔧 TF_CONFIG 생성 시작 (TF_CONFIG generation started)'
tf_count=${NUM_WORKERS:-${PET_NNODES:-}}
tf_workers=${tf_count:-1}
tf_port=${TF_PORT:-2222}
tf_namespace=${NAMESPACE:-default}
# shellcheck disable=SC3028 # the kubelet sets HOSTNAME
tf_host=${HOSTNAME:-$(hostname -s)}
tf_host=${tf_host%%.*}
tf_job=${tf_host%-node-0-*}
if [ "$tf_job" = "$tf_host" ]; then tf_fail "host name '$tf_host' is not <job>-node-0-<number>"; fi
tf_index=${JOB_COMPLETION_INDEX:-${tf_host##*-}}
tf_number 'the number of workers' "$tf_workers"
tf_number 'the index of this worker' "$tf_index"
tf_number TF_PORT "$tf_port"
tf_name 'the namespace' "$tf_namespace"
tf_name 'the job' "$tf_job"
if [ "$tf_workers" -lt 1 ]; then tf_fail 'there must be at least 1 worker'; fi
if [ "$tf_port" -lt 1 ] || [ "$tf_port" -gt 65535 ]; then tf_fail "TF_PORT $tf_port is no port"; fi
case ${TF_ADDRESSES:-} in
  *[!abcdefghijklmnopqrstuvwxyz0123456789.:,-]*) tf_fail "TF_ADDRESSES '$TF_ADDRESSES' is no list of host:port" ;;
esac
tf_given=${TF_ADDRESSES:-}, tf_hosts='' tf_next=0
while [ "$tf_next" -lt "$tf_workers" ]; do
  tf_address=${tf_given%%,*} tf_given=${tf_given#*,}
  if [ -z "$tf_address" ]; then
    tf_address="$tf_job-node-0-$tf_next.$tf_job.$tf_namespace.svc.cluster.local:$tf_port"
  fi
  tf_hosts="$tf_hosts${tf_hosts:+,}\"$tf_address\""
  tf_next=$((tf_next + 1))
done
# shellcheck disable=SC2089,SC2090 # the quotes are part of the JSON
TF_CONFIG="{\"cluster\":{\"worker\":[$tf_hosts]},\"task\":{\"type\":\"worker\",\"index\":$tf_index}}"
tf_range="this is worker $tf_index, but the number of workers is $tf_workers; \
set NUM_WORKERS to the numNodes of the TrainJob"
# --- end of tf_config.sh
if [ "$tf_index" -ge "$tf_workers" ]; then tf_fail "$tf_range"; fi
# shellcheck disable=SC2090
export TF_CONFIG
echo '✅ TF_CONFIG 생성 완료! (TF_CONFIG generation done)'
echo "TF_CONFIG: $TF_CONFIG"
