"""Model, runtime and context limit that a listing shows for a session (contract, sessions section 7.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..core import keys
from ..core.javascript import is_finite, trim
from .document import Document, items, member, section, text_of

DEFAULT_TEXT = "openai/gpt-6-astra"
DEFAULT_CONTEXT_TOKENS = 200_000
_CLI_RUNTIMES = ("claude-cli", "google-gemini-cli")
_RUNTIME_NAMES = {"pi": "openclaw", "codex-app-server": "codex"}
_OPENAI = "https://api.openai.com/v1"
_OWN_ROUTE = ("headers", "request", "api", "auth")


class ModelRef(NamedTuple):
    provider: str
    model: str


class Runtime(NamedTuple):
    """What runs a session, and what says so: `session`, `model`, `provider`, `implicit`, `session-key`."""

    id: str
    source: str


class ContextLimit(NamedTuple):
    """A limit of tokens, and what gave it."""

    tokens: int
    source: str


class AcpRow(NamedTuple):
    """What is known of a session that an agent of another kind runs, over ACP."""

    agent: str
    backend: str


def split_model(text: str, provider: str) -> ModelRef:
    """A model text at its first `/`; without one, under the given provider."""
    before, slash, after = text.partition("/")
    if not slash or not trim(before):
        return ModelRef(provider, trim(after if slash else text))
    return ModelRef(trim(before).lower(), trim(after))


def default_model(agent_id: str, config: Document) -> ModelRef:
    """The default of an agent, as a listing reads it."""
    own = member(roster_entry(agent_id, config), "model")
    text = _model_text(own) or _model_text(member(config, "agents", "defaults", "model")) or DEFAULT_TEXT
    return split_model(text, "openai")


def roster_entry(agent_id: str, config: Document) -> Document:
    """What the configuration says of one agent."""
    agents = section(config, "agents")
    wanted = keys.normalize_agent_id(agent_id)
    if agents.get("entries") is not None:
        named: Iterator[tuple[str, Any]] = iter(section(agents, "entries").items())
    else:
        named = ((text_of(member(entry, "id")), entry) for entry in items(agents, "list"))
    found = next((entry for name, entry in named if keys.normalize_agent_id(name) == wanted), None)
    return found if isinstance(found, Mapping) else {}


def _model_text(value: Any) -> str:
    return text_of(member(value, "primary")) if isinstance(value, Mapping) else text_of(value)


def listed_model(entry: Document, default: ModelRef, config: Document, acp: AcpRow | None = None) -> ModelRef:
    """The model of a row: an override first, then that of the last run, then the default."""
    if acp is not None:
        return ModelRef("acpx", f"{acp.agent}-acp")
    if override := text_of(entry.get("modelOverride")):
        return _overridden(override, text_of(entry.get("providerOverride")).lower(), default)
    model, provider = entry.get("model"), entry.get("modelProvider")
    if not isinstance(model, str) or not model:
        return default
    if not isinstance(provider, str) or not provider:
        return split_model(model, default.provider)
    if trim(provider).lower() in _CLI_RUNTIMES:
        return _of_cli_runtime(model, default, config)
    return ModelRef(provider, model)


def _overridden(override: str, provider: str, default: ModelRef) -> ModelRef:
    if not provider:
        return split_model(override, default.provider)
    prefix = f"{provider}/"
    own = override[len(prefix) :] if override.lower().startswith(prefix) else override
    return ModelRef(provider, own)


def _of_cli_runtime(model: str, default: ModelRef, config: Document) -> ModelRef:
    """A command line ran it: its name is no provider of models."""
    named = split_model(model, "")
    if named.provider and named.provider not in _CLI_RUNTIMES:
        return named
    listing = [provider for provider, one in _models(config) if member(one, "id") == model]
    return ModelRef(listing[0] if len(listing) == 1 else default.provider, model)


def _models(config: Document) -> Iterator[tuple[str, Document]]:
    """Every configured model with its provider."""
    for name, provider in section(config, "models", "providers").items():
        for one in items(provider, "models"):
            if isinstance(one, Mapping):
                yield name, one


def agent_runtime(
    entry: Document, ref: ModelRef, agent_id: str, config: Document, acp: AcpRow | None = None
) -> Runtime:
    """What runs the session: by the row, else by the configuration of its model or provider."""
    if acp is not None:
        return Runtime(acp.backend, "session-key")
    harness, override = entry.get("agentHarnessId"), entry.get("agentRuntimeOverride")
    locked = entry.get("modelSelectionLocked") is True and not text_of(entry.get("pluginOwnerId"))
    for stored in (harness if locked else None, override, harness):
        name = text_of(stored).lower()
        if name and name not in ("auto", "default"):
            return Runtime(_RUNTIME_NAMES.get(name, name), "session")
    return _configured_runtime(ref, agent_id, config)


def _configured_runtime(ref: ModelRef, agent_id: str, config: Document) -> Runtime:
    provider = _provider(ref.provider, config)
    name = f"{ref.provider}/{ref.model}"
    listed = next((one for one in items(provider, "models") if member(one, "id") == ref.model), None)
    own = roster_entry(agent_id, config)
    places = (
        (member(own, "models", name), "model"),
        (member(config, "agents", "defaults", "models", name), "model"),
        (listed, "model"),
        (provider, "provider"),
    )
    for place, source in places:
        found = text_of(member(place, "agentRuntime", "id")).lower()
        if found and found != "auto":
            return Runtime(_RUNTIME_NAMES.get(found, found), source)
    if ref.provider.lower() != "openai":
        return Runtime("auto", "implicit")
    url = text_of(provider.get("baseUrl")).rstrip("/")
    standard = url in ("", _OPENAI) and not any(provider.get(setting) for setting in _OWN_ROUTE)
    return Runtime("codex" if standard else "openclaw", "implicit")


def _provider(name: str, config: Document) -> Document:
    """A provider's configuration; names are compared without case."""
    found = next(
        (
            one
            for known, one in section(config, "models", "providers").items()
            if known.lower() == name.lower()
        ),
        None,
    )
    return found if isinstance(found, Mapping) else {}


def context_limit(
    entry: Document, ref: ModelRef, runtime: Runtime, default: ModelRef, config: Document
) -> ContextLimit:
    """The tokens that a session's context may have.

    OpenClaw's own catalogue of models is in no file: where only that would know, its general
    default is given, with the source `default`.
    """
    window, cap = _window(ref, config)
    stored = _tokens(entry.get("contextTokens"))
    names = (entry.get("modelProvider"), entry.get("model"))
    if entry.get("modelSelectionLocked") is True and stored and _agree(names, ref):
        return ContextLimit(stored, "session, locked")
    limit = min(filter(None, (cap, window)), default=None)
    same = names == ref and entry.get("agentHarnessId") == runtime.id
    source = entry.get("contextTokensSource")
    if stored and same and source == "runtime" and (limit is None or stored < limit):
        return ContextLimit(stored, "session, told by the runtime")
    if limit is not None:
        return ContextLimit(limit, "configuration")
    if stored and same and source == "resolved-v1":
        return ContextLimit(stored, "session, resolved")
    fallback = _window(default, config)[0]
    if fallback is not None:
        return ContextLimit(fallback, "window of the default model")
    return ContextLimit(DEFAULT_CONTEXT_TOKENS, "default")


def _agree(names: tuple[Any, Any], ref: ModelRef) -> bool:
    return all(named is None or named == shown for named, shown in zip(names, ref, strict=True))


def _window(ref: ModelRef, config: Document) -> tuple[int | None, int | None]:
    """contextWindow and contextTokens as configured; another provider's entry gives only the window."""
    own = next(
        (one for one in items(_provider(ref.provider, config), "models") if member(one, "id") == ref.model),
        None,
    )
    if isinstance(own, Mapping):
        return _tokens(own.get("contextWindow")), _tokens(own.get("contextTokens"))
    others = [one for _, one in _models(config) if one.get("id") == ref.model]
    return (_tokens(others[0].get("contextWindow")) if others else None), None


def _tokens(value: Any) -> int | None:
    return int(value) if is_finite(value) and value > 0 else None


def is_acp_key(key: str) -> bool:
    return bool(re.match("acp:", keys.body(key)))
