"""Chat models behind memory extraction, and documents across the border."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_libctx.document_loaders import SourceLoader, shelve_documents
from langchain_libctx.generators import ChatModelGenerator
from langchain_libctx.testing.memory import EchoModel
from pydantic import BaseModel

from libctx_core import LibraryOfContext
from libctx_core.errors import (
    InferenceConfigurationError,
    InferenceTimeoutError,
    InferenceUnavailableError,
    InvalidInferenceOutputError,
)


class Question(BaseModel):
    text: str


class Answer(BaseModel):
    value: int


class Structured(EchoModel):
    """A model whose structured output is scripted."""

    answer: Any = None
    asked: Any = None

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        assert kwargs == {"include_raw": True}

        async def answer(messages: Any) -> Any:
            self.asked = messages
            if isinstance(self.answer, Exception):
                raise self.answer
            if self.answer == "slow":
                await asyncio.sleep(5)
            return self.answer

        return RunnableLambda(answer)


RAW = AIMessage("{}", usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9})


async def test_a_chat_model_generates_in_a_schema() -> None:
    model = Structured(answer={"raw": RAW, "parsed": Answer(value=4), "parsing_error": None})
    result = await ChatModelGenerator(model, Answer, "Add.").generate(Question(text="2+2"))
    assert result.output == Answer(value=4)
    assert (result.usage.requests, result.usage.input_tokens, result.usage.output_tokens) == (1, 7, 2)
    assert [message.type for message in model.asked] == ["system", "human"]
    assert model.asked[1].content == '{"text":"2+2"}'


async def test_plain_mappings_are_checked() -> None:
    model = Structured(answer={"raw": AIMessage(""), "parsed": {"value": 5}, "parsing_error": None})
    assert (await ChatModelGenerator(model, Answer, "Add.").generate(Question(text="x"))).output.value == 5


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"raw": RAW, "parsed": None, "parsing_error": ValueError("x")}, InvalidInferenceOutputError),
        ({"raw": RAW, "parsed": {"value": "many"}, "parsing_error": None}, InvalidInferenceOutputError),
        (ConnectionError("away"), InferenceUnavailableError),
        ("slow", InferenceTimeoutError),
    ],
)
async def test_every_failure_is_one_of_the_ports_errors(answer: Any, error: type[Exception]) -> None:
    generator = ChatModelGenerator(Structured(answer=answer), Answer, "Add.", timeout=0.2)
    with pytest.raises(error):
        await generator.generate(Question(text="x"))


def test_a_model_without_structured_output_is_refused_at_once() -> None:
    with pytest.raises(InferenceConfigurationError):
        ChatModelGenerator(EchoModel(), Answer, "Add.")


class Files(BaseLoader):
    def lazy_load(self) -> Any:
        yield Document("The harbour opens at six.", metadata={"page": 1}, id="a")
        yield Document("The crane lifts nine tonnes.", metadata={"page": 2}, id="b")


def test_a_loader_fills_a_shelf(tmp_path: Path) -> None:
    with LibraryOfContext(tmp_path / "l.sqlite") as library:
        assert len(shelve_documents(library, Files())) == 2
        shelve_documents(library, Files())
        library.flush()
        hits = library.consult("crane", 5)
        assert [hit.text for hit in hits if "crane" in hit.text] == ["The crane lifts nine tonnes."]
        assert hits[0].metadata == {"page": 2}


class _Ref:
    source_type, source_id = "note", "one"


class _Catalog:
    def as_ref(self, source: Any) -> Any:
        return _Ref()


class _Sources:
    """The part of a group of sources that a loader uses."""

    catalog = _Catalog()

    async def list(self) -> tuple[Any, ...]:
        return ("one", "two")

    async def read(self, source: Any) -> Any:
        return f"text of {source}".encode() if source == "one" else (Document("part"), "rest")


async def test_sources_load_as_documents() -> None:
    loader = SourceLoader(_Sources())  # type: ignore[arg-type]
    expected = ["text of one", "part\n\nrest"]
    assert [document.page_content async for document in loader.alazy_load()] == expected
    documents = await asyncio.to_thread(loader.load)
    assert [document.page_content for document in documents] == expected
    assert documents[0].metadata == {"source_type": "note", "source_id": "one"}
