"""The options that name a shared store. Light: `list` has one of them, and usually needs no network."""

from __future__ import annotations

import click

optional_remote = click.option(
    "--remote",
    is_flag=False,
    flag_value="",
    metavar="[URL]",
    help="Use the shared store, not the local one. Without a URL: PLAYHEAD_REMOTE, or the config.",
)
remote_option = click.option(
    "--remote",
    metavar="URL",
    help="Shared store: s3://bucket/prefix, gs://, az:// or file:///. Default: PLAYHEAD_REMOTE, or the config.",
)
