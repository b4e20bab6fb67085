"""The context bank: windows of context and todo lists by key, cut to budgets, guarded by scopes."""

from libctx_core.bank.admin import BankAdmin, Finding
from libctx_core.bank.allocation import allocate
from libctx_core.bank.bank import ContextBank
from libctx_core.bank.cache import CacheConfig, EvictionPolicy
from libctx_core.bank.chunks import chunk_by_tokens
from libctx_core.bank.files import FileBankStore
from libctx_core.bank.fitting import combine_and_truncate_as_string, select_and_truncate_context, window_tokens
from libctx_core.bank.leash import Leash, current_leash, introspection
from libctx_core.bank.lorebook import LoreBook
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.query import ElementMatch, LoreBookQueryResult, MemorySearchResult
from libctx_core.bank.remote import ContextResourceMetadataBackend, RemoteMemory, Success, error_type_of
from libctx_core.bank.settings import (
    MultiPageBudgetStrategy,
    PromptPlan,
    TokenBudgetSettings,
    TruncationMethod,
    TruncationSettings,
    plan_prompt,
)
from libctx_core.bank.todo import TodoList, TodoListTask
from libctx_core.bank.tools import BankTool, MemoryTools, plain_tools, register_secure_tools, secure_tools
from libctx_core.bank.window import ContextWindow, ConverseData, ConverseHistory, MiniBank

__all__ = [
    "BankAdmin",
    "BankTool",
    "CacheConfig",
    "ContextBank",
    "ContextResourceMetadataBackend",
    "ContextWindow",
    "ConverseData",
    "ConverseHistory",
    "ElementMatch",
    "EvictionPolicy",
    "FileBankStore",
    "Finding",
    "Leash",
    "LoreBook",
    "LoreBookQueryResult",
    "MemorySearchResult",
    "MemoryTools",
    "MiniBank",
    "MultiPageBudgetStrategy",
    "PromptPlan",
    "RemoteMemory",
    "StorageMode",
    "Success",
    "TodoList",
    "TodoListTask",
    "TokenBudgetSettings",
    "TruncationMethod",
    "TruncationSettings",
    "allocate",
    "chunk_by_tokens",
    "combine_and_truncate_as_string",
    "current_leash",
    "error_type_of",
    "introspection",
    "plain_tools",
    "plan_prompt",
    "register_secure_tools",
    "secure_tools",
    "select_and_truncate_context",
    "window_tokens",
]
