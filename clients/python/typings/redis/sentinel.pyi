from typing import Any, Mapping, Sequence

from redis import Redis

class Sentinel:
    def __init__(self, sentinels: Sequence[tuple[str, int]], *,
                 sentinel_kwargs: Mapping[str, Any]) -> None: ...
    def master_for(self, service_name: str, **kwargs: Any) -> Redis: ...
