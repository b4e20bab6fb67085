"""The governor: budgets, envelopes, the reading desk, and the life of a turn."""

from libctx_core.governor.agent import AgentReply, GovernedTextAgent, ReplyFormatError
from libctx_core.governor.budget import Budgets, resolve_budgets
from libctx_core.governor.envelope import Desk, DeskItem, GovernedPrompt, Omission, OmittedProtected, Part
from libctx_core.governor.governor import ContextGovernor
from libctx_core.governor.redaction import RedactionReceipt
from libctx_core.governor.status import ThreadStatus

__all__ = [
    "AgentReply",
    "Budgets",
    "ContextGovernor",
    "Desk",
    "DeskItem",
    "GovernedPrompt",
    "GovernedTextAgent",
    "Omission",
    "OmittedProtected",
    "Part",
    "RedactionReceipt",
    "ReplyFormatError",
    "ThreadStatus",
    "resolve_budgets",
]
