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
