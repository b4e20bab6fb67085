"""What counts as asking: marks, and the words clauses begin with."""

import pytest

from libctx_core.governor.asking import asks


@pytest.mark.parametrize(
    "text",
    [
        "What is the code?",
        "Remind me of the code",
        "ok and where was it",
        "Please list the options",
        "I forgot. Which belt was it",
        "明天天气怎么样吗",
        "部署什么时候？",
        "Wann fährt die Fähre",
        "Où est la clé",
    ],
)
def test_questions_and_instructions_ask(text) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "I went to the market. The coffee could have been stronger.",
        "Today was nice",
        "They did it",
        "We have a plan, which is good",
        "The mill by the river is what I painted.",
        "",
    ],
)
def test_statements_do_not(text) -> None:
    assert not asks(text)
