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

tf_file=${TF_CONFIG_FILE:-/shared-env/tf_config.env}
if [ ! -r "$tf_file" ]; then
  echo "There is no $tf_file: set NUM_WORKERS of the init container tf-config-generator" \
    "to the numNodes of the TrainJob."
  exit 1
fi
# shellcheck source=/dev/null
. "$tf_file"
echo "TF_CONFIG: $TF_CONFIG"
