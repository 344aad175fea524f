"""The environment that points SDKs and agent CLIs at a loopback server. Knows their variables."""

from __future__ import annotations

import os

from playhead.testing.scripted_llm.mint import Mint

_LOOPBACK = "127.0.0.1,localhost"


def false_keys(mint: Mint) -> dict[str, str]:
    """Keys that open nothing and look real, so that redaction has its work to do."""
    return {
        "ANTHROPIC_API_KEY": f"sk-ant-api03-{mint.secret(93)}AA",
        "OPENAI_API_KEY": f"sk-proj-{mint.secret(74)}T3BlbkFJ{mint.secret(74)}",
        "GEMINI_API_KEY": f"AIzaSy{mint.secret(33)}",
    }


def agent_environ(url: str) -> dict[str, str]:
    """Where the SDKs and agents are to look for their model."""
    outside = os.environ.get("NO_PROXY") or os.environ.get("no_proxy")
    direct = f"{outside},{_LOOPBACK}" if outside else _LOOPBACK
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_BASE": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "GOOGLE_GEMINI_BASE_URL": url,
        # Both fetch things from the net at start, and an agent on a script needs no net.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "NO_PROXY": direct,
        "no_proxy": direct,
    }
