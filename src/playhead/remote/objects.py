"""A folder in an object store (S3, GCS, Azure), or on a disk. Knows obstore; not runs.

obstore is an extra, so it is imported when a shared store is first used. Its errors become RemoteError, with the
reason and the remedy in one sentence.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from playhead.errors import RemoteError, UsageError

_SCHEMES = ("s3", "gs", "az", "file")
# Seconds to connect, and until retries of one request end. The default of three minutes is too long for a user.
_CONNECT_S, _RETRY_S, _RETRIES = 5, 20, 4
# Seconds for one request. A server needs more than the default of 30 to assemble an object of a gigabyte.
_REQUEST_S = 180
_CREDENTIALS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for a profile in ~/.aws"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """An object, without its content."""

    path: str
    size: int
    modified_ns: int
    e_tag: str


class ObjectFolder:
    """The objects below one URL: `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///folder`."""

    def __init__(
        self, url: str, environ: Mapping[str, str] = os.environ, *, for_writing: bool = False
    ) -> None:
        self.url = url.rstrip("/")
        self._library = _library()
        self._errors = import_module("obstore.exceptions")
        self._store = self._opened(environ, for_writing=for_writing)

    def _opened(self, environ: Mapping[str, str], *, for_writing: bool) -> Any:
        parts = urlsplit(self.url)
        if parts.scheme not in _SCHEMES or (parts.scheme != "file" and not parts.netloc):
            raise UsageError(
                f"{self.url} is not a shared store; expected s3://bucket/prefix, gs://bucket/prefix, "
                "az://container/prefix or file:///folder."
            )
        stores = import_module("obstore.store")
        try:
            if parts.scheme == "file":
                folder = Path(unquote(parts.path))
                if for_writing:
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                elif not folder.is_dir():
                    raise RemoteError(f"{self.url}: there is no such folder.")
                return stores.LocalStore(folder)
            options: dict[str, Any] = {
                "client_options": {
                    "connect_timeout": timedelta(seconds=_CONNECT_S),
                    "timeout": timedelta(seconds=_REQUEST_S),
                },
                "retry_config": {
                    "max_retries": _RETRIES,
                    "retry_timeout": timedelta(seconds=_RETRY_S),
                },
            }
            if parts.scheme == "s3":
                options["config"] = _s3_config(environ)
                if str(options["config"].get("endpoint", "")).startswith("http://"):
                    options["client_options"]["allow_http"] = True
            return stores.from_url(self.url, **options)
        except (OSError, ValueError, self._errors.BaseError) as error:
            raise RemoteError(f"{self.url} cannot be opened: {_first_line(error)}") from None

    def put(self, path: str, content: bytes) -> None:
        """Create or replace an object."""
        with self._translated(path):
            self._library.put(self._store, path, content)

    def create(self, path: str, content: bytes) -> bool:
        """Create an object. False: it exists already, and stays as it is."""
        with self._translated(path):
            try:
                self._library.put(self._store, path, content, mode="create", use_multipart=False)
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
                return False
            return True

    def put_file(self, path: str, file: BinaryIO) -> None:
        """Upload from an open file, in parallel parts if it is large. The object appears when it is complete."""
        with self._translated(path):
            self._library.put(self._store, path, file)

    def get(self, path: str, largest: int) -> bytes | None:
        """Return the whole content. None: there is no such object. RemoteError: it is larger than `largest`."""
        with self._translated(path):
            try:
                found = self._library.get(self._store, path)
            except FileNotFoundError:
                return None
            if found.meta["size"] > largest:
                raise RemoteError(f"{self.url}/{path} is too large ({found.meta['size']:,} bytes).")
            return bytes(found.bytes())

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return these bytes of an object. FileNotFoundError: there is no such object."""
        with self._translated(path):
            return bytes(self._library.get_range(self._store, path, start=start, end=stop))

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield the content in blocks. FileNotFoundError: there is no such object."""
        with self._translated(path):
            for block in self._library.get(self._store, path).stream(min_chunk_size=1 << 20):
                yield bytes(block)

    def facts(self, path: str) -> ObjectFacts | None:
        with self._translated(path):
            try:
                return _facts(self._library.head(self._store, path))
            except FileNotFoundError:
                return None
            except (self._errors.BaseError, OSError) as error:
                if any(one in str(error) for one in ("400 Bad Request", "403 Forbidden")):
                    # The answer to HEAD has no body, so it does not say why: expired credentials, a wrong clock.
                    next(iter(self._library.list(self._store, path)), None)
                raise

    def list(self, prefix: str) -> Iterator[ObjectFacts]:
        with self._translated(prefix):
            for batch in self._library.list(self._store, prefix):
                yield from (_facts(one) for one in batch)

    def delete(self, paths: Sequence[str]) -> None:
        with self._translated(paths[0] if paths else ""):
            for path in paths:
                try:
                    self._library.delete(self._store, path)
                except FileNotFoundError:
                    continue  # another process was faster

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise RemoteError(f"{self.url}: there is no such bucket.") from None
            raise
        except (self._errors.BaseError, OSError) as error:
            raise RemoteError(self._explained(path, error)) from None
        except BaseException as error:
            # A failed assertion inside obstore, which is not an Exception.
            if type(error).__name__ != "PanicException":
                raise
            raise RemoteError(self._explained(path, error)) from None

    def _explained(self, path: str, error: BaseException) -> str:
        text = str(error)
        if "RequestTimeTooSkewed" in text:
            return f"{self.url} refuses requests because the clock of this machine is wrong. Correct it."
        if "ExpiredToken" in text:
            return f"{self.url}: the credentials have expired. {_CREDENTIALS}; then run the command again."
        refused = (self._errors.PermissionDeniedError, self._errors.UnauthenticatedError)
        marks = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "403 Forbidden")
        if isinstance(error, (*refused, PermissionError)) or any(one in text for one in marks):
            return f"{self.url} refuses the credentials, or access to {path}. {_CREDENTIALS}."
        if "NoSuchBucket" in text:
            return f"{self.url}: there is no such bucket."
        if "169.254" in text or "credential" in text.lower():
            return f"No credentials for {self.url} were found. {_CREDENTIALS}."
        return f"{self.url} cannot be reached or used ({_first_line(error)})."


def _facts(meta: Mapping[str, Any]) -> ObjectFacts:
    return ObjectFacts(
        path=str(meta["path"]),
        size=int(meta["size"]),
        modified_ns=int(meta["last_modified"].timestamp() * 1e9),
        e_tag=str(meta.get("e_tag") or ""),
    )


def _first_line(error: BaseException) -> str:
    """obstore adds a dump of its structures after an empty line."""
    return str(error).partition("\n")[0].strip()[:300] or type(error).__name__


def _library() -> Any:
    try:
        return import_module("obstore")
    except ImportError:
        raise UsageError("Shared stores need the extra `s3`: pip install 'playhead[s3]'.") from None


_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def _s3_config(environ: Mapping[str, str]) -> dict[str, Any]:
    """Endpoint, region and keys from the environment, else from the profile in ~/.aws.

    obstore reads the environment, but not the profile files that the AWS tools share.
    """
    profile = _profile(environ)

    def setting(name: str, *variables: str) -> str | None:
        return next((environ[one] for one in variables if environ.get(one)), profile.get(name))

    has_keys = bool(environ.get("AWS_ACCESS_KEY_ID"))
    keys = environ if has_keys else {name.upper(): value for name, value in profile.items()}
    region = setting("region", "AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = setting("endpoint_url", *_ENDPOINTS)
    if not endpoint and any(one in environ for one in _ENDPOINTS):
        # Set but empty: obstore would use the empty text as an address.
        endpoint = f"https://s3.{region}.amazonaws.com"
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise UsageError(
            f"The endpoint of S3 is {endpoint!r} (AWS_ENDPOINT_URL, or the profile); expected https://host."
        )
    found: dict[str, Any] = {
        "access_key_id": keys.get("AWS_ACCESS_KEY_ID"),
        "secret_access_key": keys.get("AWS_SECRET_ACCESS_KEY"),
        "token": keys.get("AWS_SESSION_TOKEN"),
        "region": region,
        "endpoint": endpoint,
    }
    return {name: value for name, value in found.items() if value}


def _profile(environ: Mapping[str, str]) -> dict[str, str]:
    name = environ.get("AWS_PROFILE", "default")
    folder = Path(environ.get("HOME", "~")).expanduser() / ".aws"
    sections = (
        (environ.get("AWS_CONFIG_FILE") or folder / "config", f"profile {name}"),
        (environ.get("AWS_CONFIG_FILE") or folder / "config", name),
        (environ.get("AWS_SHARED_CREDENTIALS_FILE") or folder / "credentials", name),
    )
    found: dict[str, str] = {}
    for path, section in sections:
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeError):
            continue  # a file of another tool, which checks it itself
        if parser.has_section(section):
            found.update(parser[section])
    return found
