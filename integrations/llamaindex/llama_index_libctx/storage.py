"""A whole storage context on one library file."""

from llama_index.core.storage.storage_context import IMAGE_VECTOR_STORE_NAMESPACE, StorageContext

from libctx_core.access import Scope
from llama_index_libctx.docstore import LibraryDocumentStore, LibraryIndexStore, namespace_of
from llama_index_libctx.kvstore import LibraryKVStore
from llama_index_libctx.library import PathOrLibrary, lease
from llama_index_libctx.vector_store import LibraryVectorStore


def library_storage_context(
    library: PathOrLibrary,
    collection_name: str = "default",
    *,
    embed_dim: int | None = None,
    embed_model_name: str | None = None,
    scope: Scope | None = None,
) -> StorageContext:
    """Return a storage context whose nodes, documents, hashes and index structures live in one file.

    Nothing has to be persisted: each change is durable when its call returns, and opening
    the file again continues where it stopped. Contexts with different collection names
    share a file and know nothing of each other's documents.

    Args:
        library: An open library or the path of its file.
        collection_name: Which of the file's node collections to use.
        embed_dim: Length of the vectors; None lets the first one fix it.
        embed_model_name: Identity of the embedding model; the file refuses another one.
        scope: Access scope that every call is held to.
    """
    shared = lease(library)
    vectors = LibraryVectorStore(
        shared, collection_name, embed_dim=embed_dim, embed_model_name=embed_model_name, scope=scope
    )
    images = LibraryVectorStore(shared, f"{collection_name}/{IMAGE_VECTOR_STORE_NAMESPACE}", scope=scope)
    pairs = LibraryKVStore(shared, collection_name=collection_name, scope=scope)
    return StorageContext.from_defaults(
        docstore=LibraryDocumentStore(pairs, namespace_of(collection_name), vector_store=vectors),
        index_store=LibraryIndexStore(pairs, f"index_store:{collection_name}"),
        vector_store=vectors,
        image_store=images,
    )
