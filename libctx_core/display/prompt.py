"""The picture of one request: what fills its budget, why each message is there, what was left out."""

from typing import Any

from libctx_core.display.desk import desk_summary
from libctx_core.display.markup import COLOURS, Html, element, fold, legend, stacked_bar, table, view
from libctx_core.display.plain import bar, columns, number, preview
from libctx_core.display.shapes import OmittedProtectedShape, PartShape, PromptShape

_LETTERS = {
    "system": "s",
    "protected": "P",
    "recent": "r",
    "desk": "D",
    "turn": "T",
    "synthetic": "x",
    "frame": "f",
}
_HEAD = ("#", "origin", "role", "tokens", "id", "text")


def prompt_summary(prompt: PromptShape) -> str:
    """Return a request in one line."""
    counts = {origin: _count(prompt, origin) for origin in ("protected", "recent", "desk")}
    counts["desk"] = len(prompt.desk.items)
    facts = [f"{origin} {number(count)}" for origin, count in counts.items()]
    facts.append(f"paged out {number(prompt.paged_out_events)}")
    if prompt.omitted_protected:
        facts.append(f"PROTECTED BUT OMITTED {len(prompt.omitted_protected)}")
    return f"GovernedPrompt {_budget(prompt)} · {' · '.join(facts)}"


def prompt_text(prompt: PromptShape) -> str:
    """Return, line by line, what fills the budget, why each message is there and what was left out."""
    shares = _shares(prompt)
    lines = [
        prompt_summary(prompt),
        f"[{bar(((_LETTERS[name], tokens) for name, tokens in shares.items()), prompt.token_budget)}]",
        "  ".join(f"{_LETTERS[name]} {name} {number(tokens)}" for name, tokens in shares.items()),
        f"counted with {preview(prompt.tokenizer)}{'' if prompt.exact else ' (an upper bound)'}",
        "",
        *columns(_HEAD, (_cells(index, part) for index, part in enumerate(prompt.parts)), right=(0, 3)),
        "",
        desk_summary(prompt.desk),
        _marks(prompt),
    ]
    lines += _omissions(prompt)
    lines += [f"! protected {_omitted_protected(item)}" for item in prompt.omitted_protected]
    return "\n".join(lines)


def prompt_html(prompt: PromptShape) -> Html:
    """Return the picture of a request for a notebook."""
    shares = _shares(prompt)
    drawn = stacked_bar(((name, COLOURS[name], tokens) for name, tokens in shares.items()), prompt.token_budget)
    alerts = [
        element("div", f"Protected, but not in this request: {_omitted_protected(item)}", class_="alert")
        for item in prompt.omitted_protected
    ]
    left_out = _omissions(prompt)
    counted = f"counted with {prompt.tokenizer}" + ("" if prompt.exact else ", an upper bound")
    return view(
        element("div", element("b", "GovernedPrompt"), f" {_budget(prompt)}, {counted}"),
        drawn,
        legend((f"{name} {number(tokens)}", COLOURS[name]) for name, tokens in shares.items()),
        *alerts,
        table(_HEAD, (_html_cells(index, part) for index, part in enumerate(prompt.parts)), right=(0, 3)),
        element("div", desk_summary(prompt.desk)),
        element("div", _marks(prompt), class_="dim"),
        fold(
            f"Left out: {number(prompt.paged_out_events)} events, each can be paged in again",
            *(element("div", line) for line in left_out),
        ),
    )


def prompt_records(prompt: PromptShape) -> list[dict[str, Any]]:
    """Return one mapping per message, for data frames."""
    return [
        {
            "position": index,
            "origin": part.origin,
            "role": part.role,
            "tokens": part.tokens,
            "event_id": part.event_id,
            "record_ids": tuple(part.record_ids),
            "cut": part.cut,
            "note": part.note,
            "preview": part.preview,
        }
        for index, part in enumerate(prompt.parts)
    ]


def _budget(prompt: PromptShape) -> str:
    return f"{number(prompt.token_count)}/{number(prompt.token_budget)} tokens"


def _count(prompt: PromptShape, origin: str) -> int:
    return sum(part.origin == origin for part in prompt.parts)


def _shares(prompt: PromptShape) -> dict[str, int]:
    """Return tokens by origin, in the order of the request; tool schemas and the frame of the reply are ``frame``."""
    shares: dict[str, int] = {}
    for part in prompt.parts:
        shares[part.origin] = shares.get(part.origin, 0) + part.tokens
    rest = prompt.token_count - sum(shares.values())
    return shares if rest <= 0 else {**shares, "frame": rest}


def _shown_ids(part: PartShape) -> str:
    if part.event_id is not None:
        return part.event_id
    return ", ".join(part.record_ids[:3]) + (" …" if len(part.record_ids) > 3 else "")


def _remark(part: PartShape) -> str:
    return "; ".join(filter(None, ("cut" if part.cut else "", part.note)))


def _cells(index: int, part: PartShape) -> tuple[str, ...]:
    remark = _remark(part)
    text = preview(part.preview, 72) + (f" [{remark}]" if remark else "")
    return str(index), part.origin, part.role, number(part.tokens), preview(_shown_ids(part), 28), text


def _html_cells(index: int, part: PartShape) -> tuple[str, ...]:
    remark = _remark(part)
    text: str = Html(
        element("span", preview(part.preview)) + (element("i", f" {remark}", class_="dim") if remark else "")
    )
    key = element("span", class_="key", style=f"background:{COLOURS.get(part.origin, '#9e9e9e')}")
    origin = Html(key + element("span", part.origin))
    return str(index), origin, part.role, number(part.tokens), preview(_shown_ids(part), 48), text


def _marks(prompt: PromptShape) -> str:
    marks = prompt.watermarks
    return (
        f"recorded through {number(marks.recorded_through)}, searchable through {number(marks.indexed_through)}"
        f" (lag {number(marks.recorded_through - marks.indexed_through)})"
    )


def _omissions(prompt: PromptShape) -> list[str]:
    return [
        f"left out {number(item.count)} events, {item.first_sequence}–{item.last_sequence}: {preview(item.reason)}"
        for item in prompt.omitted
    ]


def _omitted_protected(item: OmittedProtectedShape) -> str:
    return f"{preview(item.event_id)} ({number(item.tokens)} tokens): {preview(item.reason)}"
