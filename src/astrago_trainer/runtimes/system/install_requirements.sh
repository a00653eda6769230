# Init container install-requirements: the packages of ASTRAGO_REQUIREMENTS, one a line, into /astrago/packages, an
# environment that also sees the packages of the image. Runs in the image of the training, so both have one Python.
set -eu
python=$(command -v python3 || command -v python) || {
  echo 'install-requirements: the image has no Python; build an image with the packages instead'
  exit 1
}
if ! "$python" -m pip --version > /dev/null 2>&1; then
  echo "install-requirements: the image's $python has no pip; build an image with the packages instead"
  exit 1
fi
folder=${ASTRAGO_PACKAGES:-/astrago}
printf '%s\n' "$ASTRAGO_REQUIREMENTS" > "$folder/requirements.txt"
# Without its own pip, which Debian splits off; the image's pip installs into it.
"$python" -m venv --system-site-packages --without-pip "$folder/packages"
exec "$python" -m pip --python "$folder/packages/bin/python" install \
  --disable-pip-version-check --no-cache-dir --no-input -r "$folder/requirements.txt"
