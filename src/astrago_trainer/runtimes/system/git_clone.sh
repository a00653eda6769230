# Init container git-clone: brings the branch GIT_SYNC_BRANCH of GIT_SYNC_REPO into GIT_SYNC_ROOT.
# Repository and branch come from a user: nothing in them may become an option, another transport,
# or a line of this script, and no credential in the address may reach the log or the clone.
set -eu

repo=${GIT_SYNC_REPO:-}
branch=${GIT_SYNC_BRANCH:-}
root=${GIT_SYNC_ROOT:-/git}
limit=${GIT_SYNC_TIMEOUT:-600}

say() {
  printf 'git-clone: %s\n' "$1"
}
fail() {
  say "$1"
  exit 1
}

# Everything between // and the last @ of the host part: user names can be tokens, too.
without_credentials() {
  sed 's#//[^/[:space:]]*@#//#g'
}

if [ -z "$repo" ]; then
  say 'GIT_SYNC_REPO is empty, nothing to clone'
  exit 0
fi
case $repo in
  -*) fail 'GIT_SYNC_REPO must not begin with a dash' ;;
  *[[:space:][:cntrl:]]*) fail 'GIT_SYNC_REPO must not hold white space or control characters' ;;
  # Git has no use for them, and they are a place for tokens that nobody would blank out.
  *[?#]*) fail 'GIT_SYNC_REPO must not hold a query or a fragment' ;;
  *://-* | *@-*) fail 'GIT_SYNC_REPO has a host that begins with a dash' ;;
  https://?*/?* | ssh://?*/?*) ;;
  *://* | *::* | /* | .*) fail 'GIT_SYNC_REPO must be an https or ssh address' ;;
  ?*@?*:?*) ;; # user@host:path, the short way to write an ssh address
  *) fail 'GIT_SYNC_REPO must be an https or ssh address' ;;
esac
case $branch in
  -*) fail 'GIT_SYNC_BRANCH must not begin with a dash' ;;
  *[[:space:][:cntrl:]]*) fail 'GIT_SYNC_BRANCH must not hold white space or control characters' ;;
esac
if [ -n "$branch" ] && ! git check-ref-format "refs/heads/$branch"; then
  fail "GIT_SYNC_BRANCH '$branch' is not a possible name of a branch"
fi
case $root in
  *..* | *//*) fail "GIT_SYNC_ROOT '$root' must be a plain absolute path" ;;
  /?*) ;;
  *) fail "GIT_SYNC_ROOT '$root' must be a plain absolute path" ;;
esac
case $limit in
  '' | *[!0-9]* | 0* | ??????*) fail "GIT_SYNC_TIMEOUT '$limit' must be a number of seconds" ;;
esac
shown=$(printf '%s\n' "$repo" | without_credentials)

# Fixed here, not taken from the environment. A redirect could lead to an address inside the
# cluster; a prompt would wait for ever; LC_ALL keeps the messages below recognisable.
export GIT_ALLOW_PROTOCOL=https:ssh GIT_TERMINAL_PROMPT=0 LC_ALL=C
export GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh -o BatchMode=yes}"

mkdir -p "$root"
if [ -n "$(ls -A "$root")" ]; then
  # Only what an earlier try of ours has left may go: the folder may be somebody's volume.
  if [ "$(git config --file "$root/.git/config" --get astrago.clone || :)" != yes ]; then
    fail "$root is not empty and holds no earlier clone of this container; nothing was changed"
  fi
  find "$root" -mindepth 1 -maxdepth 1 -exec rm -rf -- '{}' +
fi

say "cloning $shown${branch:+, branch $branch,} into $root"
set -- git -c http.followRedirects=false -c submodule.recurse=false \
  clone --quiet --depth=1 --template= -c astrago.clone=yes
if [ -n "$branch" ]; then set -- "$@" "--branch=$branch"; fi
set -- "$@" -- "$repo" "$root"
if command -v timeout > /dev/null; then set -- timeout "$limit" "$@"; fi

# In the background, because a shell runs no trap while it waits for a command in the foreground,
# and as process 1 it would sit out the whole grace period of a job that is deleted meanwhile.
messages=$(mktemp -t git-clone.XXXXXX)
child=''
trap 'rm -f "$messages"' EXIT
trap 'if [ -n "$child" ]; then kill "$child"; fi; exit 143' TERM INT
"$@" > "$messages" 2>&1 < /dev/null &
child=$!
# `wait` alone could miss a signal for ever: one that comes between the check of the traps and the
# wait itself. The trap runs after every sleep, and a child that has ended is no longer there.
while kill -0 "$child" 2> /dev/null; do sleep 0.2; done
code=0
wait "$child" || code=$?
child=''
without_credentials < "$messages"

if [ "$code" -ne 0 ]; then
  said=$(cat "$messages")
  case $code:$said in
    124:* | 143:*) fail "no clone of $shown after $limit s (GIT_SYNC_TIMEOUT)" ;;
    *'Remote branch '*' not found'*) fail "$shown has no branch or tag '$branch'" ;;
    *'Could not resolve host'*) fail "the host of $shown is unknown here: a typing error, or no DNS" ;;
    *'Failed to connect'* | *'Connection refused'* | *'timed out'*) fail "no connection to $shown" ;;
    *'terminal prompts disabled'* | *'Authentication failed'* | *'Permission denied'*)
      fail "$shown does not exist or wants credentials" ;;
    *'error: 30'[12378]* | *redirect*) fail "$shown is redirected; give the address it leads to" ;;
    *'not found'*) fail "there is no repository at $shown" ;;
    *) fail "git ended with code $code for $shown" ;;
  esac
fi

git config --file "$root/.git/config" remote.origin.url "$shown"
chmod -R a+rX "$root"
say "done, commit $(git --git-dir="$root/.git" rev-parse HEAD)"
