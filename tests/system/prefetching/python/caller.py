"""A program that uses the client. mypy checks it against the annotations of the client."""

from __future__ import annotations

from idmint import IdmintError, Ids, SeriesNumber, Unavailable


async def take(ids: Ids) -> tuple[int, str]:
    return await ids.anext(), await ids.anext_text()


def use(url: str) -> list[str]:
    with Ids([url], "snowflake", token="t", query={"type": "message"}) as ids:
        number: int = ids.next()
        text: str = ids.next_text()
        try:
            of_series: SeriesNumber = ids.number("acme-2026", "order-4711")
            return [text, str(number), of_series.text, *ids.mint(3), *ids.append("aa77f99c", [{"event": "Paid"}])]
        except Unavailable as error:
            wait: float | None = error.retry_after
            raise SystemExit(wait) from error
        except IdmintError as error:
            return [] if error.outcome_unknown else [str(error.status), str(ids.decode(text)["matches"])]
