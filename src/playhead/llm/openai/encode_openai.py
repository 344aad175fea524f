"""The part of a scripted answer that both OpenAI APIs share: errors, headers, keys, the list of models."""

from __future__ import annotations

from playhead.llm.provider import Provider
from playhead.llm.scripting.id_source import IdSource
from playhead.llm.scripting.llm_script import ScriptedFailure
from playhead.llm.scripting.reply_encoder import Json, ReplyEncoder

# The default error form of providers is OpenAI's.
OPENAI_ERRORS = Provider()


class OpenAiEncoder(ReplyEncoder):
    """The base class of both encoders."""

    default_model = "gpt-6.1-sol"
    key_variable = "OPENAI_API_KEY"

    def environ(self, url: str) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_BASE": f"{url}/v1",
            # LiteLLM downloads a price list at its start, and an agent with a script needs no network.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def fake_key(self, ids: IdSource) -> str:
        return f"sk-proj-{ids.secret(74)}T3BlbkFJ{ids.secret(74)}"

    def headers(self, ids: IdSource) -> list[tuple[str, str]]:
        return [
            ("x-request-id", f"req_{ids.hex(32)}"),
            ("openai-organization", f"org-{ids.alnum(24)}"),
            ("openai-version", "2020-10-01"),
            ("openai-processing-ms", "42"),
            ("x-ratelimit-limit-requests", "10000"),
            ("x-ratelimit-remaining-requests", "9999"),
        ]

    def error(self, failure: ScriptedFailure, _ids: IdSource) -> Json:
        return OPENAI_ERRORS.error_body(failure.status, failure.message)
