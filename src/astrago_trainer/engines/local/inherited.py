"""Which variables of the server's environment reach jobs and the processes above them, where jobs can read them too."""

from __future__ import annotations

import re
from collections.abc import Mapping

VARIABLE = "ASTRAGO_LOCAL_ENV"
"""Names with commas between: variables of the server that jobs get as well."""
_NEEDED = (
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TZ",
    "LD_LIBRARY_PATH",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
)
"""What training code may need of the machine, and an image would bring along."""
_ADDRESSES = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
_HAS_PASSWORD = re.compile(r"//[^/]*@")


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Passwords, keys and tokens of the server stay with it, unless their variables are named."""
    named = [name.strip() for name in environment.get(VARIABLE, "").split(",")]
    addresses = [name for name in _ADDRESSES if not _HAS_PASSWORD.search(environment.get(name, ""))]
    return {
        name: environment[name]
        for name in (*_NEEDED, *addresses, *named)
        if name in environment and name != VARIABLE
    }
