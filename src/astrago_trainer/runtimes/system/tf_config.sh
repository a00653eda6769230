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
