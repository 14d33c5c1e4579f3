"""Handing new weights to a server: to vLLM as an adapter, to SGLang and to `practicum serve` as a folder or a version.

Owns: `load_vllm_adapter`, `unload_vllm_adapter`, `load_sglang_folder`, `load_served_version`.
Invariant: each returns only once the server says that it has the weights; anything else is a `PolicyError`, and what
the server had before is what it goes on with.
Must not know: training, where versions lie. The server reads the files itself, so it sees the same paths.

The calls follow the servers' documents and are tested against small servers that do the same. Those to vLLM were tried
on vLLM 0.32.0 on a CPU; those to SGLang are UNTESTED against a real one, and nothing was tested on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from practicum.errors import PolicyRefused
from practicum.policies.http_client import Endpoint, as_object, excerpt

_DEADLINE_S = 600.0  # reading a large checkpoint takes minutes


async def load_vllm_adapter(
    url: str, name: str, folder: Path, *, api_key_env: str | None = None, deadline_s: float = _DEADLINE_S
) -> None:
    """Have vLLM at `url` (its root) serve the LoRA adapter in `folder` as the model `name`.

    Give each version a name of its own, and ask for it by that name (`TokenPolicy.use`): then no sample under way can
    be stamped wrongly. The server needs `--enable-lora` and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True.
    """
    body = {"lora_name": name, "lora_path": str(folder.resolve())}
    await _told(url, "/v1/load_lora_adapter", body, api_key_env, deadline_s)


async def unload_vllm_adapter(
    url: str, name: str, *, api_key_env: str | None = None, deadline_s: float = _DEADLINE_S
) -> None:
    """Have vLLM forget the adapter `name`, once nothing is asked of it any more."""
    await _told(url, "/v1/unload_lora_adapter", {"lora_name": name}, api_key_env, deadline_s)


async def load_sglang_folder(
    url: str, folder: Path, version: int, *, api_key_env: str | None = None, deadline_s: float = _DEADLINE_S
) -> None:
    """Have SGLang at `url` take the weights in `folder`; from then on it stamps its samples with `version`.

    What it is sampling is finished under the old weights first.
    """
    body = {"model_path": str(folder.resolve()), "weight_version": str(version), "flush_cache": True}
    data = await _told(url, "/update_weights_from_disk", body, api_key_env, deadline_s)
    reply = as_object(data)
    if reply.get("success") is not True:
        raise PolicyRefused(f"the server did not take the weights in {folder}: {str(reply.get('message'))[:200]}")


async def load_served_version(
    url: str,
    version: int,
    folder: Path | None = None,
    *,
    api_key_env: str | None = None,
    deadline_s: float = _DEADLINE_S,
) -> None:
    """Have `practicum serve` at `url` take `version` of its run, or the weights in `folder` as `version`."""
    body: dict[str, Any] = {"version": version} | ({} if folder is None else {"folder": str(folder.resolve())})
    data = await _told(url, "/v1/load", body, api_key_env, deadline_s)
    if as_object(data).get("version") != version:
        raise PolicyRefused(f"the server did not take version {version}: {excerpt(data)}")


async def _told(url: str, path: str, body: Mapping[str, Any], api_key_env: str | None, deadline_s: float) -> bytes:
    # One try: a repeated hand-over of which the first was heard is refused, which would hide that it was.
    endpoint = Endpoint(url.rstrip("/").removesuffix("/v1"), api_key_env=api_key_env, deadline_s=deadline_s, tries=1)
    try:
        return await endpoint.ask(path, body, bytes)
    finally:
        await endpoint.aclose()
