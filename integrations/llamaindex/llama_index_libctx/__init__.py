"""One SQLite file as LlamaIndex vector store, docstore, index store, chat store and memory."""

from llama_index_libctx.chat_store import LibraryChatStore
from llama_index_libctx.docstore import LibraryDocumentStore, LibraryIndexStore
from llama_index_libctx.index import LibraryVectorIndex
from llama_index_libctx.ingestion import LibraryIngestionPipeline
from llama_index_libctx.kvstore import LibraryKVStore
from llama_index_libctx.memory import LibraryMemory
from llama_index_libctx.memory_block import LibraryMemoryBlock
from llama_index_libctx.storage import library_storage_context
from llama_index_libctx.vector_store import LibraryVectorStore

__all__ = [
    "LibraryChatStore",
    "LibraryDocumentStore",
    "LibraryIndexStore",
    "LibraryIngestionPipeline",
    "LibraryKVStore",
    "LibraryMemory",
    "LibraryMemoryBlock",
    "LibraryVectorIndex",
    "LibraryVectorStore",
    "library_storage_context",
]
