"""Strings that want to be more than text: for shells, YAML, paths, headers, terminals, databases, browsers."""

# ruff: noqa: E501 - a table of strings, by kind
from __future__ import annotations

SHELL = [
    "$(touch /tmp/canary)", "`touch /tmp/canary`", "; touch /tmp/canary", "| touch /tmp/canary", "&& touch /tmp/canary",
    "\n touch /tmp/canary", "'; touch /tmp/canary; '", '"; touch /tmp/canary; "', "${IFS}touch${IFS}/tmp/canary",
    "$((1/0))", "${PATH:-x}", "~root", "*", "?", "[a-z]", "{a,b}", "!!", "#x", "\\", "\\\n", "$'\\x41'", "<(id)", ">(id)",
    "> /tmp/canary", ">> /tmp/canary", "< /etc/passwd", "2>&1", "& sleep 1 &", "() { :;}; echo x", "%s%n%x", "%00",
    "--help", "-rf", "--", "-c id", "-", "=x", "a=b", "$0", "$@", "$*", "$?", "$$", "EOF", "<<EOF", "\\$(id)",
]  # fmt: skip
YAML = [
    "!!python/object/apply:os.system ['id']", "&a *a", "*a", "a: b", "- a", "{a: b}", "[a]", "? a", "| \n a", "> \n a",
    "%TAG", "@a", "yes", "no", "on", "off", "null", "~", "NaN", ".inf", "0755", "0o755", "1e3", "1_000", "12:30:45",
    "2001-01-01", "<<: *a", "---", "...", "# comment", "'", '"', "''", '""', "a #b", "a: #b", "!!binary aGk=", "\t a",
    "{{ .Values }}", "{% raw %}", "{{7*7}}", "${{ secrets }}", "<%= 1 %>", "#{7*7}",
]  # fmt: skip
PATHS = [
    "../../etc/passwd", "/etc/passwd", "..", ".", "/", "//", "/..", "./a", "a/../b", "a//b", "a/./b", "..\\..\\x",
    "C:\\x", "\\\\host\\x", "file:///etc/passwd", "/proc/self/environ", "/dev/zero", "a\0b", "%2e%2e%2f", "..%2f",
    "%252e%252e/", "....//", "/workspace/scripts", "/shared", "~/.ssh/id_rsa", "a" * 300, "a/" * 200, "nul", "con",
    ".git/config", ".ssh", "/var/run/docker.sock", "..;/", "..%c0%af", "/./", "a/", "/a/.", "\u2025/x", "\uff0e\uff0e/",
]  # fmt: skip
HEADERS = [
    "a\r\nSet-Cookie: x=1", "a\nX: y", "a\rX: y", "\r\n\r\n<html>", "a\x00b", "a\x0bb", "a\x0cb", "a\x85b",
    "\u2028a", "\u2029a", "a;b=c", "a,b", 'a"b', "text/html", "application/json, text/html", "gzip", "chunked",
    "Bearer x", "Basic eDp4", "null", "bytes=0-,0-,0-", "W/\"x\"", "*", "localhost\r\nHost: evil", "close",
]  # fmt: skip
TERMINAL = [
    "\x1b[31mred", "\x1b]0;title\x07", "\x1b[2J", "\x1b[1;1H", "\x9b31m", "\x07", "\x08\x08\x08", "\x7f", "\r overwritten",
    "\x1b]8;;http://evil\x07x\x1b]8;;\x07", "\x1bP", "\x1b_", "\x1b^", "\x1b[?1049h", "\x0e", "\x0f", "\x1bc", "\x05",
    "\u202eevil", "\u200bzero", "\u2066x\u2069", "\ufeffbom", "\u0000", "a\u0301" * 50, "\u115f", "\u3164", "\U000e0001x",
]  # fmt: skip
DATABASE = [
    "' OR 1=1 --", "'; DROP TABLE jobs; --", '" OR ""="', "1; SELECT 1", "' UNION SELECT * FROM tokens --", "\\'", "%", "_",
    "' || (SELECT hash FROM tokens) || '", "$1", ":name", "?", "%(name)s", "{0}", "{0.__class__}", "%d", "'||'", "/*", "*/",
    "x' AND SLEEP(9) --", "\u02bc OR 1=1", "\ud7ff", "\uffff", "\U0010ffff", "'; COPY x TO PROGRAM 'id'; --", "ROW(1)",
]  # fmt: skip
BROWSER = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "javascript:alert(1)", "\"><svg onload=alert(1)>",
    "';alert(1)//", "</title><script>", "<iframe src=//evil>", "data:text/html,x", "&lt;b&gt;", "&#60;", "]]>", "<!--", "-->",
    "<a href='x'>", "{{constructor.constructor('x')()}}", "${alert(1)}", "__proto__", "constructor", "prototype",
    "toString", "hasOwnProperty", "<math><mi//xlink:href=\"data:x,\">", "\u003cscript\u003e", "%3Cscript%3E", "<\x00script>",
    "expression(alert(1))", "url(javascript:x)", "@import 'x'", "vbscript:x", "<base href=//evil>",
]  # fmt: skip
NUMBERS = [
    "-1", "0", "1e309", "1e-400", "NaN", "Infinity", "-Infinity", "9" * 400, "0x10", "١٢٣", "½", "1.0.0", "2147483648",
    "9223372036854775808", "-0", "1,5", "1Gi; rm", "1e9Gi", "-1Gi", "1GiB", "Gi", "٣Gi", "1 Gi", "+1", "00", "1e",
]  # fmt: skip
KUBERNETES = [
    "kube-system", "KUBE-SYSTEM", "default", "system:masters", "a_b", "a.b", "a--b", "-a", "a-", "A", "ü", "a b", "a" * 64,
    "PET_NNODES", "LD_PRELOAD", "PATH", "PYTHONPATH", "BASH_ENV", "$(PET_NNODES)", "$$(x)", "$(x", "$()", "nvidia.com/gpu",
    "node-role.kubernetes.io/master", "hostPath", "privileged", "serviceAccountName", "metadata.uid", "ghcr.io/x@sha256:0",
    "x:latest:latest", "localhost:5000/x", "//x", "https://x/y", "ext::sh -c id", "--upload-pack=id", "git@x:y",
    "file:///etc", "ssh://-oProxyCommand=id/x", "https://a:b@c/d", "http://169.254.169.254/", "10.0.0.1", "[::1]",
]  # fmt: skip

STRINGS = tuple(
    dict.fromkeys(
        [*SHELL, *YAML, *PATHS, *HEADERS, *TERMINAL, *DATABASE, *BROWSER, *NUMBERS, *KUBERNETES]
    )
)
