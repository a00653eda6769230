"""Kinds of text a request may hold, each with its rule and the sentence said when it is broken.

The rules are those of Kubernetes where the text reaches Kubernetes, and stricter where a tenant's
text would meet a path, a shell or git. Messages never repeat values that may hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from astrago_trainer.core import names
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.quantity import Quantity, QuantityError

MAX_ARGUMENT_BYTES = 131_071
"""Linux refuses an argument or `NAME=value` of 128 KiB with its zero byte (MAX_ARG_STRLEN)."""
MAX_CONFIGMAP_BYTES = 1_048_576
"""Kubernetes refuses a ConfigMap whose values have more than 1 MiB in all."""

_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ENTRYPOINT = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]*")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][^\x00-\x1f\x7f$]{0,499}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BRANCH_REFUSED = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$|/\.|\.lock(/|$)")
_GIT_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<login>[^/@]*@)?(?P<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])"
    r"(?P<port>:[0-9]+)?(?P<path>/[^\s?#]*)?"
)
_GIT_SCP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^\s:-][^\s:]*")
_DOMAIN = r"(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])"
_IMAGE_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_DOMAIN}(?:\.{_DOMAIN})*(?::[0-9]+)?/)?{_IMAGE_PART}(?:/{_IMAGE_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


def fail(code: str, message: str, remedy: str = "") -> NoReturn:
    """Report a broken rule from inside a pydantic validator; `parse` turns it into a Problem."""
    raise PydanticCustomError(code, "{message}", {"message": message, "remedy": remedy})


def short(text: str) -> str:
    """`text` as it may be shown in a message."""
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


def byte_length(text: str) -> int:
    """How many bytes `text` has in a file or an argument."""
    return len(text.encode("utf-8", "surrogatepass"))


def normal_path(path: str) -> str:
    """The path without doubled or final slashes: `/data` and `/data/` are one place."""
    return "/" + "/".join(part for part in path.split("/") if part)


def _named(check: Callable[[str], Iterable[Problem]]) -> AfterValidator:
    """A rule of `names` as a validator; several problems become one message."""

    def validate(value: str) -> str:
        problems = list(check(value))
        if problems:
            message = " ".join(problem.message for problem in problems)
            fail(problems[0].code, message, problems[0].remedy)
        return value

    return AfterValidator(validate)


def _object_name(value: str) -> str:
    if len(value) > 253 or _DNS_SUBDOMAIN.fullmatch(value) is None:
        fail(
            "FieldValueInvalid",
            "must be a Kubernetes name (at most 253 lower-case letters, digits, '-' and '.', with "
            f"a letter or digit at both ends); found {short(value)}.",
        )
    return value


def _volume_name(value: str) -> str:
    if len(value) > 63 or re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", value) is None:
        fail(
            "FieldValueInvalid",
            "must hold at most 63 lower-case letters, digits and '-', with a letter or digit at "
            f"both ends; found {short(value)}.",
        )
    return value


def _data_key(value: str) -> str:
    if len(value) > 253 or _DATA_KEY.fullmatch(value) is None or value.startswith(".."):
        fail(
            "FieldValueInvalid",
            "must be the key of a Secret or ConfigMap: letters, digits, '-', '_' and '.'; "
            f"found {short(value)}.",
        )
    return value if value != "." else fail("FieldValueInvalid", "must not be '.'.")


def _env_name(value: str) -> str:
    if "=" in value:
        name = value.split("=", 1)[0]
        fail(
            "FieldValueInvalid",
            f"must be a name alone; found '=' in it, after {short(name)}.",
            "Put what follows '=' into value.",
        )
    if len(value) > 255 or _ENV_NAME.fullmatch(value) is None:
        fail(
            "FieldValueInvalid",
            "must hold only letters, digits and '_', and not begin with a digit (at most 255 "
            f"characters); found {short(value)}.",
        )
    return value


def _label_key(value: str) -> str:
    prefix, slash, name = value.rpartition("/")
    is_valid = len(name) <= 63 and _QUALIFIED_PART.fullmatch(name) is not None
    if slash:
        is_valid = is_valid and len(prefix) <= 253 and bool(_DNS_SUBDOMAIN.fullmatch(prefix))
    if not is_valid:
        fail(
            "FieldValueInvalid",
            "must be a key as Kubernetes wants it: an optional DNS name and '/', then at most 63 "
            "letters, digits, '-', '_' and '.', with a letter or digit at both ends; "
            f"found {short(value)}.",
        )
    return value


def _label_value(value: str) -> str:
    if len(value) > 63 or (value and _QUALIFIED_PART.fullmatch(value) is None):
        fail(
            "FieldValueInvalid",
            "must be empty or at most 63 letters, digits, '-', '_' and '.', with a letter or digit "
            f"at both ends; found {short(value)}.",
        )
    return value


def _image(value: str) -> str:
    if len(value) > 500:  # the limit of Trainer 2.2 and later
        fail("FieldValueTooLong", f"must have at most 500 characters; found {len(value)}.")
    if _IMAGE.fullmatch(value) is None:
        fail(
            "FieldValueInvalid",
            "must be an image such as pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime; "
            f"found {short(value)}.",
            "Write registry/name:tag or registry/name@digest, the name in lower case.",
        )
    return value


def _absolute_path(value: str) -> str:
    if not value.startswith("/") or len(value) > 4096:
        fail("FieldValueInvalid", f"must be an absolute path; found {short(value)}.")
    if ".." in value.split("/"):
        fail("FieldValueInvalid", f"must not hold '..'; found {short(value)}.")
    if ":" in value or _CONTROL.search(value):
        fail("FieldValueInvalid", f"must not hold ':' or control characters; found {short(value)}.")
    return value


def _mount_path(value: str) -> str:
    _absolute_path(value)
    if normal_path(value) in ("/", "/proc", "/sys", "/dev"):
        fail(
            "FieldValueForbidden",
            f"must not hide the container's own {normal_path(value)}.",
            "Take a path such as /data.",
        )
    return value


def _relative_path(value: str) -> str:
    parts = value.split("/")
    if not value or len(value) > 1024 or any(part in ("", ".") for part in parts):
        fail(
            "FieldValueInvalid",
            f"must be a relative path such as pkg/model.py; found {short(value)}.",
        )
    if any(part.startswith("..") for part in parts):
        fail(
            "FieldValueInvalid", f"must stay inside its folder, without '..'; found {short(value)}."
        )
    if "\\" in value or _CONTROL.search(value) or any(byte_length(part) > 255 for part in parts):
        fail(
            "FieldValueInvalid",
            "must not hold '\\', control characters or a part of more than 255 bytes; "
            f"found {short(value)}.",
        )
    return value


def _entrypoint(value: str) -> str:
    """It is written into the command, so it may hold nothing that a shell would read."""
    _relative_path(value)
    if _ENTRYPOINT.fullmatch(value) is None:
        fail(
            "FieldValueInvalid",
            "must hold only letters, digits, '_', '.', '-' and '/', and not begin with '-'; "
            f"found {short(value)}.",
            "Rename the file, or write the command yourself.",
        )
    return value


def _branch(value: str) -> str:
    if not value or len(value) > 250 or _BRANCH_REFUSED.search(value):
        fail("FieldValueInvalid", f"must be the name of a git branch or tag; found {short(value)}.")
    return value


def _git_url(value: str) -> str:
    """The value is never repeated: people paste addresses with tokens in them."""
    match = _GIT_URL.fullmatch(value)
    if len(value) > 2048 or (match is None and _GIT_SCP.fullmatch(value) is None):
        fail(
            "FieldValueInvalid",
            "must be the address of a git repository, such as https://example.org/team/project.git.",
        )
    login = (match["login"] if match is not None else None) or ""
    if ":" in login or (login and match is not None and match["scheme"] != "ssh"):
        fail(
            "FieldValueForbidden",
            "must not hold a password or token: everybody who can read the job would see it.",
            "Keep it in a Secret.",
        )
    return value


def git_scheme(url: str) -> str:
    """The protocol of a repository's address; `git@host:path` is ssh."""
    match = _GIT_URL.fullmatch(url)
    return match["scheme"] if match else "ssh"


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        fail("FieldValueTypeInvalid", "must be a quantity such as 4, 500m or 16Gi.")
    try:
        text = str(value)
        if len(text) > 40:
            raise QuantityError(text)
        amount = Quantity.parse(text)
    except ValueError as error:  # QuantityError, and str() of an integer with thousands of digits
        reason = (
            str(error) if isinstance(error, QuantityError) else "the number has too many digits"
        )
        fail(
            "FieldValueInvalid",
            f"{reason}.",
            "Write a number and one suffix: m, k, M, G, Ki, Mi, Gi.",
        )
    if amount < Quantity.parse("0"):
        fail(
            "FieldValueInvalid",
            f"must not be negative; found {short(text)}.",
            "Leave out the minus.",
        )
    return text


def _positive_quantity(value: str) -> str:
    if Quantity.parse(value).is_zero():
        fail(
            "FieldValueInvalid",
            f"must be more than 0; found {short(value)}.",
            "Give an amount, or leave it out.",
        )
    return value


def _bytes_quantity(value: str) -> str:
    if not Quantity.parse(value).is_zero() and Quantity.parse(value) < Quantity.parse("1"):
        fail(
            "FieldValueInvalid",
            f"must be at least 1 byte; found {short(value)}.",
            "Did you mean a larger suffix, such as Mi or Gi?",
        )
    return _positive_quantity(value)


def _processes(value: Any) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1024:
        return value
    if isinstance(value, str) and value in ("auto", "cpu", "gpu"):
        return value
    fail("FieldValueNotSupported", "must be a number from 1 to 1024, or auto, cpu or gpu.")


def _argument(value: str) -> str:
    if byte_length(value) > MAX_ARGUMENT_BYTES:
        fail(
            "FieldValueTooLong",
            f"must have at most {MAX_ARGUMENT_BYTES} bytes; found {byte_length(value)}.",
            "Move the text into the code and call it from there.",
        )
    return value


def _shell_text(value: str) -> str:
    if not value.strip():
        fail("FieldValueRequired", "must not be empty.", "Leave it out to run the posted script.")
    return _argument(value)


def _sound(value: str) -> str:
    """No environment, argument, file name or JSON document can carry these."""
    if "\0" in value:
        fail(
            "FieldValueInvalid",
            f"must not hold a NUL character; found one at {value.index(chr(0))}.",
        )
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            fail(
                "FieldValueInvalid",
                f"must be Unicode text; found half of a surrogate pair at {error.start}.",
            )
    return value


_STRICT = StringConstraints(strict=True)
_SOUND = AfterValidator(_sound)
_NUMBER_OR_TEXT = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]})

Text = Annotated[str, _STRICT, _SOUND]
UserId = Annotated[Text, _named(names.check_user_id)]
JobName = Annotated[Text, _named(names.check_trainjob_name)]
Namespace = Annotated[Text, _named(names.check_namespace)]
ObjectName = Annotated[Text, AfterValidator(_object_name)]
VolumeName = Annotated[Text, AfterValidator(_volume_name)]
DataKey = Annotated[Text, AfterValidator(_data_key)]


def requirement_lines(value: Any) -> Any:
    """The content of a requirements file as its lines, without comments; a list stays as it is."""
    if not isinstance(value, str):
        return value
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in value.splitlines())
    return tuple(line for line in lines if line)


def _requirement(value: str) -> str:
    if value.startswith("-"):
        fail(
            "FieldValueForbidden",
            f"must be a package, as in numpy==2.1; found the option {short(value)}.",
            "Leave options out: the package index and its settings belong to the platform.",
        )
    if _REQUIREMENT.fullmatch(value) is None:
        fail(
            "FieldValueInvalid",
            "must be a package with at most 500 characters, as in numpy==2.1 or name @ https://…; "
            f"found {short(value)}.",
        )
    return value


EnvName = Annotated[Text, AfterValidator(_env_name)]
LabelKey = Annotated[Text, AfterValidator(_label_key)]
LabelValue = Annotated[Text, AfterValidator(_label_value)]
Image = Annotated[Text, AfterValidator(_image)]
AbsolutePath = Annotated[Text, AfterValidator(_absolute_path)]
MountPath = Annotated[Text, AfterValidator(_mount_path)]
RelativePath = Annotated[Text, AfterValidator(_relative_path)]
Entrypoint = Annotated[Text, AfterValidator(_entrypoint)]
Branch = Annotated[Text, AfterValidator(_branch)]
GitUrl = Annotated[Text, AfterValidator(_git_url)]
QuantityText = Annotated[str, BeforeValidator(_quantity), _NUMBER_OR_TEXT]
PositiveQuantityText = Annotated[QuantityText, AfterValidator(_positive_quantity)]
BytesText = Annotated[QuantityText, AfterValidator(_bytes_quantity)]
Processes = Annotated[
    int | str,
    BeforeValidator(_processes),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["auto", "cpu", "gpu"]}]}
    ),
]
Argument = Annotated[Text, AfterValidator(_argument)]
Requirement = Annotated[Text, AfterValidator(_requirement)]
ShellText = Annotated[Text, AfterValidator(_shell_text)]
Count = Annotated[int, Field(strict=True)]
