"""The receiver's check in the documentation is run as it is printed."""

from __future__ import annotations

import re
import time
from pathlib import Path

from astrago_trainer.notify.signing import new_secret, signature_headers

PAGE = Path(__file__).parents[2] / "docs" / "notifications.md"


def test_the_documented_check_accepts_what_is_ours_and_nothing_else():
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    page: dict = {}
    exec(block[1], page)
    check, secret, body = page["is_from_astrago"], new_secret(), b'{"id": "m"}'
    headers = signature_headers("m", body, [new_secret(), secret], time.time())

    assert check(headers, body, secret)
    assert not check(headers, body + b" ", secret)
    assert not check(headers, body, new_secret())
    assert not check(signature_headers("m", body, [secret], time.time() - 400), body, secret)
