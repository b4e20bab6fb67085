"""Nothing that is cut to a budget exceeds it, for any content, strategy and setting."""

import itertools
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from libctx_core.bank import (
    ContextWindow,
    ConverseData,
    ConverseHistory,
    LoreBook,
    MultiPageBudgetStrategy,
    TokenBudgetSettings,
    TruncationMethod,
    TruncationSettings,
    allocate,
    chunk_by_tokens,
    combine_and_truncate_as_string,
    plan_prompt,
    select_and_truncate_context,
    window_tokens,
)
from libctx_core.bank.prompts import fit_prompt
from libctx_core.errors import InvalidBudgetError
from libctx_core.tokens import TokenCounter

EXACT = TokenCounter.for_encoding("cl100k_base")
WORDS = TokenCounter(lambda text: len(text.split()), name="words")
TEXT = st.text(alphabet='ab cd.\n{}"né語', max_size=40)
METHODS = st.sampled_from(list(TruncationMethod))
SETTINGS = st.builds(
    TruncationSettings,
    multiply_window_size_by=st.sampled_from([-1.0, 0.0, 0.5, 2.0]),
    fill_mode=st.booleans(),
    fill_and_split_mode=st.booleans(),
    preserve_text_matches=st.booleans(),
)
NAMES = st.sampled_from(["a", "b", "cd", "né", "x"])
ENTRIES = st.builds(
    lambda key, value, weight, links, required: LoreBook(key, value, weight, links, (), required),
    NAMES,
    TEXT,
    st.integers(0, 5),
    st.lists(NAMES, max_size=2),
    st.lists(NAMES, max_size=1),
)
WINDOWS = st.builds(
    lambda entries, elements, turns: ContextWindow(
        {entry.key: entry for entry in entries},
        elements,
        ConverseHistory([ConverseData("user", text) for text in turns]),
    ),
    st.lists(ENTRIES, max_size=5),
    st.lists(TEXT, max_size=5),
    st.lists(TEXT, max_size=5),
)


def window(entries=(), elements=(), turns=()):
    return ContextWindow(
        {entry.key: entry for entry in entries},
        list(elements),
        ConverseHistory([ConverseData("user", text) for text in turns]),
    )


def texts(turns):
    return [turn.content for turn in turns]


class TestWindowsFit:
    @settings(deadline=None)
    @given(WINDOWS, TEXT, st.integers(-5, 60), METHODS, SETTINGS, st.sampled_from([EXACT, WORDS]))
    @example(window([LoreBook("a", "a a")], ["b"], ["cd"]), "a", 0, TruncationMethod.TOP, TruncationSettings(), EXACT)
    def test_no_result_exceeds_its_budget(self, whole, text, budget, method, settings_, counter):
        before = whole.copy()
        result = select_and_truncate_context(whole, text, budget, counter, method=method, settings=settings_)
        factor = settings_.multiply_window_size_by
        assert window_tokens(result, counter) <= max(0, budget * factor if factor > 0 else budget)
        assert whole == before
        assert set(result.lore_book_keys) <= set(whole.lore_book_keys)
        remaining = list(whole.context_elements)
        for element in result.context_elements:
            remaining.remove(element)

    @settings(deadline=None)
    @given(WINDOWS, TEXT, st.integers(-5, 60), METHODS)
    def test_flattened_windows_fit_too(self, whole, text, budget, method):
        combined = combine_and_truncate_as_string(whole, text, budget, EXACT, method=method)
        assert EXACT.count(combined) <= max(0, budget)

    def test_only_a_lorebook_takes_everything(self):
        whole = window([LoreBook("a", "w " * 10), LoreBook("b", "w " * 10)])
        assert list(select_and_truncate_context(whole, "a b", 20, WORDS).lore_book_keys) == ["a", "b"]

    def test_two_parts_share_half_each_and_only_matching_keys_stay(self):
        whole = window([LoreBook("a", "w " * 5), LoreBook("b", "w")], [f"e{n} x" for n in range(10)])
        result = select_and_truncate_context(whole, "a", 10, WORDS)
        assert list(result.lore_book_keys) == ["a"]
        assert result.context_elements == ["e8 x", "e9 x"]

    def test_what_elements_leave_unused_the_lorebook_gets(self):
        whole = window([LoreBook("a", "w " * 8)], ["one two"])
        result = select_and_truncate_context(whole, "a", 10, WORDS)
        assert list(result.lore_book_keys) == ["a"]

    def test_three_parts_share_a_third_each(self):
        whole = window([LoreBook("a", "w w w")], ["e e e", "f f f"], ["t t t", "u u u"])
        result = select_and_truncate_context(whole, "a", 9, WORDS)
        assert (list(result.lore_book_keys), result.context_elements, texts(result.converse_history)) == (
            ["a"],
            ["f f f"],
            ["u u u"],
        )

    @pytest.mark.parametrize(
        ("settings_", "expected"),
        [(TruncationSettings(fill_mode=True), 2), (TruncationSettings(fill_and_split_mode=True), 1)],
    )
    def test_fill_takes_it_all_first_and_fill_and_split_half(self, settings_, expected):
        whole = window([LoreBook("a", "w " * 13), LoreBook("b", "w " * 13)], ["x " * 13])
        result = select_and_truncate_context(whole, "a", 26, WORDS, settings=settings_)
        assert len(result.lore_book_keys) == expected
        assert len(result.context_elements) == 2 - expected

    def test_matching_text_is_kept_first_even_with_budget_for_one(self):
        whole = window(elements=["dragon", "two", "three"])
        kept = select_and_truncate_context(whole, "the Dragon", 1, WORDS).context_elements
        preserved = TruncationSettings(preserve_text_matches=True)
        assert kept == ["three"]
        assert select_and_truncate_context(whole, "the Dragon", 1, WORDS, settings=preserved).context_elements == [
            "dragon"
        ]
        result = select_and_truncate_context(whole, "the Dragon", 2, WORDS, settings=preserved)
        assert result.context_elements == ["dragon", "three"]

    def test_equal_turns_without_uuid_are_all_kept(self):
        whole = window(turns=["same", "same", "same"])
        for preserve in (False, True):
            result = select_and_truncate_context(
                whole, "same", 9, WORDS, settings=TruncationSettings(preserve_text_matches=preserve)
            )
            assert texts(result.converse_history) == ["same"] * 3

    @pytest.mark.parametrize(
        ("method", "kept"),
        [
            (TruncationMethod.TOP, ["d", "e"]),
            (TruncationMethod.BOTTOM, ["a"]),
            (TruncationMethod.MIDDLE, ["a", "e"]),
        ],
    )
    def test_methods_keep_whole_items_without_holes(self, method, kept):
        whole = window(elements=["a", "b b b b", "c c", "d", "e"])
        assert select_and_truncate_context(whole, "", 3, WORDS, method=method).context_elements == kept

    def test_everything_stays_where_there_is_room(self):
        whole = window([LoreBook("a", "w")], ["x", "y"], ["z"])
        for method in TruncationMethod:
            result = select_and_truncate_context(whole, "a", 100, WORDS, method=method)
            assert (result.context_elements, texts(result.converse_history)) == (["x", "y"], ["z"])


NEEDS = st.dictionaries(st.sampled_from("abcdef"), st.integers(-3, 50), max_size=6)
WEIGHTS = st.one_of(st.none(), st.dictionaries(st.sampled_from("abcdef"), st.floats(-2, 1e6), max_size=6))


class TestPagesShare:
    @given(st.sampled_from(list(MultiPageBudgetStrategy)), NEEDS, st.integers(-5, 200), WEIGHTS, st.booleans())
    def test_shares_never_exceed_the_budget(self, strategy, needs, total, weights, reserve):
        shares = allocate(strategy, needs, total, weights=weights, reserve_empty=reserve)
        assert set(shares) == set(needs)
        assert all(share >= 0 for share in shares.values())
        assert sum(shares.values()) <= max(0, total)
        if not reserve:
            assert all(shares[page] == 0 for page, need in needs.items() if need <= 0)

    @given(
        st.sampled_from(
            [
                MultiPageBudgetStrategy.DYNAMIC_FILL,
                MultiPageBudgetStrategy.DYNAMIC_SIZE_FILL,
                MultiPageBudgetStrategy.PRIORITY_FILL,
            ]
        ),
        NEEDS,
        st.integers(0, 200),
    )
    def test_filling_strategies_waste_nothing(self, strategy, needs, total):
        shares = allocate(strategy, needs, total)
        assert sum(shares.values()) == min(total, sum(max(0, need) for need in needs.values()))
        assert all(shares[page] <= max(0, need) for page, need in needs.items())

    def test_equal_and_weighted_splits(self):
        needs = dict.fromkeys("abc", 100)
        equal, weighted = MultiPageBudgetStrategy.EQUAL_SPLIT, MultiPageBudgetStrategy.WEIGHTED_SPLIT
        assert allocate(equal, needs, 11) == {"a": 4, "b": 4, "c": 3}
        assert allocate(weighted, needs, 11) == {"a": 4, "b": 4, "c": 3}
        assert allocate(weighted, needs, 12, weights={"a": 3, "b": 1}) == {"a": 9, "b": 3, "c": 0}
        assert allocate(weighted, needs, 10, weights={"a": 2, "b": 1, "c": 0}) == {"a": 7, "b": 3, "c": 0}

    def test_priority_goes_in_page_order_and_size_the_smallest_first(self):
        needs = {"big": 90, "small": 10, "middle": 30}
        assert allocate(MultiPageBudgetStrategy.PRIORITY_FILL, needs, 95) == {"big": 90, "small": 5, "middle": 0}
        by_size = allocate(MultiPageBudgetStrategy.DYNAMIC_SIZE_FILL, needs, 95)
        assert (by_size["small"], by_size["middle"]) == (10, 30)
        assert by_size["big"] == 55

    def test_empty_pages_keep_or_give_up_their_share(self):
        needs = {"a": 50, "empty": 0}
        equal = MultiPageBudgetStrategy.EQUAL_SPLIT
        assert allocate(equal, needs, 10) == {"a": 5, "empty": 5}
        assert allocate(equal, needs, 10, reserve_empty=False) == {"a": 10, "empty": 0}


class TestPromptPlans:
    BASE = TokenBudgetSettings(context_window_size=100, max_tokens=20)

    def plan(self, prompt="w w w", **changes):
        from dataclasses import replace

        system = changes.pop("system", 10)
        binary = changes.pop("binary", 0)
        return plan_prompt(
            replace(self.BASE, **changes), prompt, WORDS, system_prompt_tokens=system, binary_tokens=binary
        )

    def test_the_division(self):
        plan = self.plan()
        assert (plan.prompt_tokens, plan.context_tokens, plan.answer_tokens, plan.reasoning_tokens) == (3, 67, 20, 0)

    def test_reasoning_comes_out_of_the_answer_or_of_the_input(self):
        inside = self.plan(reasoning_budget=5)
        assert (inside.context_tokens, inside.answer_tokens, inside.reasoning_tokens) == (67, 15, 5)
        outside = self.plan(reasoning_budget=5, subtract_reasoning_from_input=True)
        assert (outside.context_tokens, outside.answer_tokens) == (62, 20)

    def test_reserved_prompts_and_attachments_are_subtracted(self):
        assert self.plan(user_prompt_size=10).context_tokens == 60
        assert self.plan(binary=7).context_tokens == 60

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"context_window_size": None}, "context_window_size"),
            ({"system": 100}, "system_prompt"),
            ({"max_tokens": 90}, "max_tokens"),
            ({"max_tokens": -1}, "max_tokens"),
            ({"reasoning_budget": 21}, "reasoning_budget"),
            ({"reasoning_budget": 70, "subtract_reasoning_from_input": True}, "reasoning_budget"),
            ({"user_prompt_size": 71}, "user_prompt_size"),
            ({"prompt": "w " * 71}, "user_prompt"),
            ({"prompt": "w " * 5, "user_prompt_size": 4}, "user_prompt"),
            ({"binary": 67}, "binary_tokens"),
        ],
    )
    def test_what_does_not_fit_is_named(self, changes, field):
        with pytest.raises(InvalidBudgetError) as error:
            self.plan(**changes)
        assert error.value.field == field

    def test_long_prompts_are_compressed_then_truncated_where_that_is_allowed(self):
        spaced = "a  \t b\n\n \n\nc"
        counter = TokenCounter(len, name="characters")
        settings_ = TokenBudgetSettings(context_window_size=100, user_prompt_size=7, compress_user_prompt=True)
        assert plan_prompt(settings_, spaced, counter).prompt == "a b\n\nc"
        allowed = TokenBudgetSettings(context_window_size=100, user_prompt_size=7, allow_user_prompt_truncation=True)
        plan = plan_prompt(allowed, "one two three four", counter)
        assert plan.prompt_tokens <= 7
        assert plan.prompt.endswith("four")
        structured = TokenBudgetSettings(context_window_size=100, user_prompt_size=8, compress_user_prompt=True)
        with pytest.raises(InvalidBudgetError):
            plan_prompt(structured, '{"a":   1}', counter)

    @settings(deadline=None)
    @given(
        st.builds(
            TokenBudgetSettings,
            user_prompt_size=st.one_of(st.none(), st.integers(0, 60)),
            max_tokens=st.one_of(st.none(), st.integers(0, 60)),
            reasoning_budget=st.one_of(st.none(), st.integers(0, 60)),
            context_window_size=st.integers(1, 120),
            subtract_reasoning_from_input=st.booleans(),
            allow_user_prompt_truncation=st.just(True),
            preserve_json_in_user_prompt=st.booleans(),
            compress_user_prompt=st.booleans(),
            truncation_method=METHODS,
        ),
        TEXT,
        st.integers(0, 50),
        st.integers(0, 20),
    )
    def test_a_plan_never_exceeds_the_window(self, settings_, prompt, system, binary):
        try:
            plan = plan_prompt(settings_, prompt, EXACT, system_prompt_tokens=system, binary_tokens=binary)
        except InvalidBudgetError:
            return
        used = system + binary + plan.prompt_tokens + plan.context_tokens + plan.answer_tokens + plan.reasoning_tokens
        assert used <= settings_.context_window_size
        assert plan.context_tokens >= 0
        assert plan.prompt_tokens == EXACT.count(plan.prompt)

    def test_what_settings_alone_leave(self):
        assert TokenBudgetSettings().available_context() == 0
        assert self.BASE.available_context() == 80
        full = TokenBudgetSettings(5, 20, 10, 100, subtract_reasoning_from_input=True)
        assert full.available_context() == 65
        assert TokenBudgetSettings(500, 20, None, 100).available_context() == 0


class TestPromptsKeepTheirJson:
    @settings(deadline=None)
    @given(TEXT, st.integers(-2, 30), st.sampled_from(["top", "middle", "bottom"]), st.booleans())
    def test_nothing_exceeds_its_budget(self, text, budget, where, keep):
        for prompt in (text, f'{text} {{"a": "{"x " * 5}"}} {text}', '{"history": [{"role": "user"}, {}, {}]}'):
            fitted = fit_prompt(prompt, budget, EXACT, where=where, keep_json=keep)
            assert EXACT.count(fitted) <= max(0, budget)

    @pytest.mark.parametrize(("where", "kept"), [("top", [3, 4]), ("bottom", [1, 2]), ("middle", [1, 4])])
    def test_conversations_are_cut_by_whole_turns(self, where, kept):
        turns = [{"role": "user", "content": f"turn {number}"} for number in range(1, 5)]
        room = EXACT.count(json.dumps({"history": turns[:2]}))
        fitted = json.loads(fit_prompt(json.dumps({"history": turns}), room, EXACT, where=where, keep_json=True))
        assert fitted["history"] == [turns[number - 1] for number in kept]

    def test_objects_stay_whole_while_the_text_around_them_is_cut(self):
        value = {"order": 7, "items": ["a", "b"]}
        prompt = "before " * 30 + json.dumps(value) + " after" * 30
        for where in ("top", "middle", "bottom"):
            fitted = fit_prompt(prompt, 40, EXACT, where=where, keep_json=True)
            assert json.dumps(value) in fitted

    def test_objects_that_alone_do_not_fit_are_cut_like_text(self):
        prompt = json.dumps({"a": "x " * 100})
        assert 0 < EXACT.count(fit_prompt(prompt, 10, EXACT, where="top", keep_json=True)) <= 10

    @pytest.mark.timeout(20)
    def test_braces_that_open_nothing_cost_little(self):
        assert EXACT.count(fit_prompt('{"a":' * 20_000, 50, EXACT, where="top", keep_json=True)) <= 50


class TestChunks:
    LONG = " ".join(f"word{number}" for number in range(60))

    def test_nothing_is_lost(self):
        assert "".join(chunk_by_tokens(self.LONG, 9, EXACT)) == self.LONG

    def test_no_piece_is_too_long(self):
        assert all(EXACT.count(piece) <= 9 for piece in chunk_by_tokens(self.LONG, 9, EXACT))

    def test_pieces_are_as_long_as_they_can_be(self):
        assert [WORDS.count(piece) for piece in chunk_by_tokens(self.LONG, 25, WORDS)] == [25, 25, 10]

    def test_a_short_text_is_one_piece(self):
        assert chunk_by_tokens("short", 9, EXACT) == ["short"]

    def test_no_text_and_no_budget_give_no_pieces(self):
        assert chunk_by_tokens("", 9, EXACT) == []
        assert chunk_by_tokens(self.LONG, 0, EXACT) == chunk_by_tokens(self.LONG, -3, EXACT) == []

    def test_words_stay_whole(self):
        pieces = chunk_by_tokens(self.LONG, 9, EXACT)
        assert " ".join(piece.strip() for piece in pieces).split() == self.LONG.split()

    def test_a_word_that_is_too_long_is_cut(self):
        pieces = chunk_by_tokens("x" * 500, 7, EXACT)
        assert "".join(pieces) == "x" * 500
        assert len(pieces) > 1

    def test_pieces_overlap(self):
        pieces = chunk_by_tokens(self.LONG, 10, WORDS, overlap=3)
        for first, second in itertools.pairwise(pieces):
            assert first.split()[-3:] == second.split()[:3]
        assert pieces[-1].endswith("word59")

    def test_an_overlap_as_large_as_the_piece_still_ends(self):
        pieces = chunk_by_tokens(self.LONG, 5, WORDS, overlap=50)
        assert pieces[-1].endswith("word59")
        assert len(pieces) < 60

    def test_boundaries_of_words_can_be_given_up(self):
        pieces = chunk_by_tokens(self.LONG, 9, EXACT, preserve_word_boundary=False)
        assert "".join(pieces) == self.LONG

    @settings(deadline=None)
    @given(TEXT, st.integers(1, 20), st.integers(0, 30), st.booleans())
    def test_any_text(self, text, size, overlap, words):
        pieces = chunk_by_tokens(text, size, EXACT, overlap=overlap, preserve_word_boundary=words)
        assert all(EXACT.count(piece) <= size or len(piece) == 1 for piece in pieces)
        if not overlap:
            assert "".join(pieces) == text
        assert all(piece in text for piece in pieces)
