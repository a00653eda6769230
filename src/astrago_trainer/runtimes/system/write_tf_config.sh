# Init container tf-config-generator: leaves TF_CONFIG in a file that the container node sources.
set -eu

# --- tf_config.sh
# TF_CONFIG of this worker: all workers by their lasting host names, and which of them this one is.
# Reads NUM_WORKERS, else PET_NNODES, else 1; JOB_COMPLETION_INDEX, else the end of the host name;
# NAMESPACE (default), TF_PORT (2222). TF_ADDRESSES, host:port of each worker, goes before host names
# and port. Every value is checked, because the result is quoted text. All is said on one stream: a
# pod's log does not keep the order between two.
tf_fail() {
  printf 'TF_CONFIG generation failed: %s\n' "$1"
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
echo 'TF_CONFIG generation started'
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
if [ "$tf_index" -ge "$tf_workers" ]; then
  if [ -n "$tf_count" ]; then tf_fail "$tf_range"; fi
  # A job of the first form gives the number to the container node alone, which then makes
  # TF_CONFIG itself; a job that relies on this file hears of it from its prelude.
  echo "NUM_WORKERS is not set here and this is worker $tf_index: no file is written"
  exit 0
fi
tf_file=${TF_CONFIG_FILE:-/shared-env/tf_config.env}
printf "export TF_CONFIG='%s'\n" "$TF_CONFIG" > "$tf_file.part"
mv "$tf_file.part" "$tf_file"
echo 'TF_CONFIG generation done'
echo "TF_CONFIG: $TF_CONFIG"
