"""The built-in embedder and counters pass the suites that third parties run."""

from libctx_core.plugins import Plugins
from libctx_core.testing.counters import TextCounterSuite
from libctx_core.testing.embedders import EmbedderSuite

PLUGINS = Plugins.load([])


class TestStatic(EmbedderSuite):
    def make_embedder(self):
        return PLUGINS.embedder("static")


class TestCl100k(TextCounterSuite):
    reference = "cl100k_base"

    def make_counter(self):
        return PLUGINS.tokenizer("cl100k_base")


class TestO200k(TextCounterSuite):
    reference = "o200k_base"

    def make_counter(self):
        return PLUGINS.tokenizer("o200k_base")


class TestAnyModel(TextCounterSuite):
    reference = "cl100k_base"

    def make_counter(self):
        return PLUGINS.tokenizer("any-model")


class TestBytes(TextCounterSuite):
    reference = "o200k_base"

    def make_counter(self):
        return PLUGINS.tokenizer("utf8-bytes")
