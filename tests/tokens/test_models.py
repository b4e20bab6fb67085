"""Model names in every spelling find their vocabulary; users' own counters are taken as they are."""

import pytest

from libctx_core.ports import TextCounter
from libctx_core.tokens import TokenCounter


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "o200k_base/1"),
        ("gpt-4o-mini-2024-07-18", "o200k_base/1"),
        ("GPT-4.1-nano", "o200k_base/1"),
        ("gpt-4.5-preview", "o200k_base/1"),
        ("openai/gpt-5.1-codex", "o200k_base/1"),
        ("chatgpt-4o-latest", "o200k_base/1"),
        ("o1", "o200k_base/1"),
        ("o3-mini", "o200k_base/1"),
        ("gpt-oss-120b", "o200k_base/1"),
        ("ft:gpt-4o:team::abc", "o200k_base/1"),
        ("o200k_base", "o200k_base/1"),
        ("gpt-4", "cl100k_base/1"),
        ("gpt-4-turbo", "cl100k_base/1"),
        ("gpt-3.5-turbo-0125", "cl100k_base/1"),
        ("azure/gpt-35-turbo", "cl100k_base/1"),
        ("text-embedding-3-small", "cl100k_base/1"),
        ("ft:gpt-3.5-turbo:team::abc", "cl100k_base/1"),
        ("cl100k_base", "cl100k_base/1"),
    ],
)
def test_openai_names(model, name):
    counter = TokenCounter.for_model(model)
    assert counter.name == name
    assert counter.exact


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-sonnet-4-5", "claude"),
        ("us.anthropic.claude-3-haiku-20240307-v1:0", "claude"),
        ("qwen3:8b", "qwen"),
        ("deepseek/deepseek-chat", "deepseek"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3"),
        ("llama-2-7b", "llama2"),
        ("gemini-2.5-pro", "other"),
        ("gpt-6", "other"),
        ("gpt-4.2", "other"),
        ("opus", "other"),
    ],
)
def test_other_families_are_estimates(model, family):
    counter = TokenCounter.for_model(model)
    assert counter.name.startswith(f"{family}(")
    assert not counter.exact


def test_no_model_is_the_larger_of_both():
    for model in (None, "", "  "):
        assert TokenCounter.for_model(model).name == "larger(cl100k_base/1,o200k_base/1)"


def test_the_digit_margin_covers_one_token_a_digit():
    assert TokenCounter.for_model("qwen3").count("7" * 300) >= 300


def test_a_counter_has_the_shape_of_its_port():
    assert isinstance(TokenCounter.for_model("gpt-4o"), TextCounter)


def test_a_counter_object_of_the_users_own():
    class Words:
        name = "words/3"
        exact = True

        def count(self, text, /):
            return len(text.split())

    counter = TokenCounter(Words())
    assert (counter.name, counter.exact) == ("words/3", True)
    assert counter.count("one two three") == 3
    assert counter.count_message({"role": "user", "content": "one two three"}) == 7


def count_words(text):
    return len(text.split())


def test_a_function_of_the_users_own():
    counter = TokenCounter(count_words)
    assert counter.count("one two") == 2
    assert counter.name.endswith("count_words" + counter.name[-9:])
    assert TokenCounter(count_words, name="mine").name == "mine"


def test_two_lambdas_do_not_share_a_name():
    first, second = TokenCounter(lambda text: len(text)), TokenCounter(lambda text: len(text) // 4)
    assert first.name != second.name


@pytest.mark.parametrize("answer", [-1, 2.5, None, "7", True])
def test_a_function_without_a_usable_answer_costs_no_turn(answer, caplog):
    counter = TokenCounter(lambda text: answer)
    assert counter.count("héllo") == 6
    assert counter.count("hello") == 5
    assert len(caplog.records) == 1


def test_a_function_that_raises_costs_no_turn(caplog):
    counter = TokenCounter(lambda text: 1 // 0)
    assert counter.count("héllo") == 6
    assert "ZeroDivisionError" in caplog.text
