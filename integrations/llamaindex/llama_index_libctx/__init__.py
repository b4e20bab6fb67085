"""One SQLite file as LlamaIndex vector store, docstore, index store, chat store and memory."""

from llama_index_libctx.bridges import LibraryEmbedding, LlamaIndexEmbedder, LlamaIndexGenerator
from llama_index_libctx.chat_store import LibraryChatStore
from llama_index_libctx.docstore import LibraryDocumentStore, LibraryIndexStore
from llama_index_libctx.events import LibraryPromptEvent, LibraryWriteEvent
from llama_index_libctx.index import LibraryVectorIndex
from llama_index_libctx.ingestion import LibraryIngestionPipeline
from llama_index_libctx.kvstore import LibraryKVStore
from llama_index_libctx.memory import LibraryMemory, to_llama_index
from llama_index_libctx.memory_block import LibraryMemoryBlock
from llama_index_libctx.reader import LibraryReader, LlamaReaderSourceAdapter
from llama_index_libctx.retriever import LibraryRetriever
from llama_index_libctx.storage import library_storage_context
from llama_index_libctx.vector_store import LibraryVectorStore

__all__ = [
    "LibraryChatStore",
    "LibraryDocumentStore",
    "LibraryEmbedding",
    "LibraryIndexStore",
    "LibraryIngestionPipeline",
    "LibraryKVStore",
    "LibraryMemory",
    "LibraryMemoryBlock",
    "LibraryPromptEvent",
    "LibraryReader",
    "LibraryRetriever",
    "LibraryVectorIndex",
    "LibraryVectorStore",
    "LibraryWriteEvent",
    "LlamaIndexEmbedder",
    "LlamaIndexGenerator",
    "LlamaReaderSourceAdapter",
    "library_storage_context",
    "to_llama_index",
]
