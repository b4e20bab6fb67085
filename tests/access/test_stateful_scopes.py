"""Random histories of scopes, enrolments and pages against a model written from the contract alone."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from libctx_core.access import (
    Authority,
    Boundary,
    ContextAccess,
    ContextAccessDenied,
    EnforcementMode,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
)
from libctx_core.bank import ContextBank, ContextWindow, StorageMode
from libctx_core.errors import ResourceExistsError
from libctx_core.store.bank import BankStore
from libctx_core.store.database import Database

KIND = "CONTEXT_WINDOW"
KEYS = ("k1", "k2", "k3", "k4")
IDS = ("r1", "r2", "r3", "w1", "w2")
OPERATIONS = ("read", "write", "create", "delete", "list")
SELECTORS = st.frozensets(st.tuples(st.sampled_from("RB"), st.sampled_from(IDS)), max_size=4)
KEY = st.sampled_from(KEYS)
ENROLMENT = st.tuples(st.sampled_from(IDS), st.one_of(st.none(), st.sampled_from(IDS)))
MODE = st.sampled_from([StorageMode.MEMORY_ONLY, StorageMode.MEMORY_AND_DISK, StorageMode.DISK_ONLY])


class ModelScope:
    """What a scope allows, said again in plain sets."""

    def __init__(self, rights, strict, delegable):
        self.rights, self.strict, self.delegable = rights, strict, delegable

    def meet(self, rights, delegable, strict=False):
        met = {operation: self.rights[operation] & rights[operation] for operation in OPERATIONS}
        return ModelScope(met, self.strict or strict, self.delegable and delegable)

    def covers(self, operation, enrolment):
        resource, boundary = enrolment
        held = self.rights[operation]
        return ("R", resource) in held or (boundary is not None and ("B", boundary) in held)

    def allows(self, operation, enrolment):
        return not self.strict if enrolment is None else self.covers(operation, enrolment)


def build(rights, delegable):
    def selectors(name):
        return {Resource(i) if sort == "R" else Boundary(i) for sort, i in rights[name]}

    return Rights(*[selectors(name) for name in OPERATIONS], delegable=delegable)


RIGHTS = st.fixed_dictionaries(dict.fromkeys(OPERATIONS, SELECTORS))


class Scopes(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.database = Database(":memory:")
        self.access = ContextAccess()
        self.bank = ContextBank(BankStore(self.database), Authority(self.access))
        self.blocks, self.models = [], []
        self.pages, self.enrolled = {}, {}
        self.counter = 0
        self.pool = ThreadPoolExecutor(1)

    def teardown(self):
        for block in reversed(self.blocks):
            block.__exit__(None, None, None)
        self.pool.shutdown()
        self.bank.close()
        self.database.close()

    @property
    def model(self):
        return self.models[-1] if self.models else None

    @initialize(rights=RIGHTS)
    def some_pages(self, rights):
        self.store("k1", None, StorageMode.MEMORY_AND_DISK)
        self.create("k2", ("r1", "w1"), StorageMode.MEMORY_AND_DISK)

    def text(self):
        self.counter += 1
        return f"text {self.counter}"

    # -- scopes -----------------------------------------------------------------

    @rule(rights=RIGHTS, strict=st.booleans(), delegable=st.booleans())
    def enter(self, rights, strict, delegable):
        mode = EnforcementMode.REQUIRE_ENROLLMENT if strict else EnforcementMode.LEGACY_COMPATIBLE
        scope = self.access.issue_root_scope(Principal("p"), build(rights, delegable), mode)
        block = self.access.scope(scope)
        block.__enter__()
        outer = self.model
        self.blocks.append(block)
        self.models.append(
            ModelScope(rights, strict, delegable) if outer is None else outer.meet(rights, delegable, strict)
        )

    @rule(rights=RIGHTS, delegable=st.booleans())
    def enter_child(self, rights, delegable):
        block = self.access.child_scope(Principal("child"), build(rights, delegable))
        if self.model is None or not self.model.delegable:
            with pytest.raises(ContextAccessDenied):
                block.__enter__()
            return
        block.__enter__()
        self.blocks.append(block)
        self.models.append(self.model.meet(rights, delegable))

    @precondition(lambda self: self.models)
    @rule(rights=RIGHTS, delegable=st.booleans(), key=KEY)
    def attenuate_and_hand_on(self, rights, delegable, key):
        narrowed = self.access.attenuate(self.access.current_scope(), build(rights, delegable))
        self.check_read(self.bank.scoped(narrowed), self.model.meet(rights, delegable), key)

    @precondition(lambda self: self.blocks)
    @rule()
    def leave(self):
        self.blocks.pop().__exit__(None, None, None)
        self.models.pop()

    @invariant()
    def the_ambient_scope_is_the_expected_one(self):
        assert (self.access.current_scope() is None) == (not self.models)

    # -- pages ------------------------------------------------------------------

    def check_read(self, bank, model, key):
        if model is None or model.allows("read", self.enrolled.get(key)):
            if key in self.enrolled and key not in self.pages and model is not None:
                with pytest.raises(ContextAccessDenied):
                    bank.get(key)
                return
            expected = [self.pages[key]] if key in self.pages else []
            assert bank.get(key).context_elements == expected
        else:
            with pytest.raises(ContextAccessDenied):
                bank.get(key)

    @rule(key=KEY)
    def read(self, key):
        self.check_read(self.bank, self.model, key)

    @rule(key=KEY)
    def read_in_a_carried_thread(self, key):
        model = self.model
        self.access.executor(self.pool).submit(self.check_read, self.bank, model, key).result()

    @rule(rights=st.lists(RIGHTS, min_size=2, max_size=3))
    def many_tenants_at_once(self, rights):
        bank, outer = self.bank, self.model

        async def tenant(own):
            mode = EnforcementMode.REQUIRE_ENROLLMENT
            scope = self.access.issue_root_scope(Principal("t"), build(own, False), mode)
            model = ModelScope(own, True, False) if outer is None else outer.meet(own, False, True)
            async with self.access.scope(scope):
                for key in KEYS:
                    await asyncio.sleep(0)
                    self.check_read(bank, model, key)
                assert set(await bank.apage_keys()) == self.listed(model)

        async def everybody():
            await asyncio.gather(*[tenant(own) for own in rights])

        asyncio.run(everybody())

    @rule(key=KEY, mode=MODE)
    def store_page(self, key, mode):
        self.store(key, self.model, mode)

    def store(self, key, model, mode):
        text = self.text()
        enrolment, exists = self.enrolled.get(key), key in self.pages
        new = not exists and enrolment is None
        window = ContextWindow(context_elements=[text])
        allowed = model is None or (
            not model.strict if enrolment is None else model.covers("write" if exists else "create", enrolment)
        )
        if not allowed:
            with pytest.raises(ContextAccessDenied):
                self.bank.emplace(key, window)
            return
        self.bank.emplace(key, window, mode if new or model is None else None)
        window.context_elements.append("kept by the caller")
        self.pages[key] = text

    @rule(key=KEY, enrolment=ENROLMENT, mode=MODE)
    def create_page(self, key, enrolment, mode):
        self.create(key, enrolment, mode)

    def create(self, key, enrolment, mode):
        text = self.text()
        model = self.model
        metadata = ResourceMetadata(KIND, *enrolment)
        window = ContextWindow(context_elements=[text])
        if model is not None and not model.covers("create", enrolment):
            with pytest.raises(ContextAccessDenied):
                self.bank.create_context_window(key, metadata, window, mode)
        elif key in self.pages or key in self.enrolled:
            with pytest.raises(ResourceExistsError):
                self.bank.create_context_window(key, metadata, window, mode)
        else:
            self.bank.create_context_window(key, metadata, window, mode)
            self.pages[key], self.enrolled[key] = text, enrolment

    @rule(key=KEY)
    def change_page(self, key):
        enrolment, model = self.enrolled.get(key), self.model
        orphan = key in self.enrolled and key not in self.pages
        text = self.text()
        seen = []

        def block(window):
            seen.append(list(window.context_elements))
            window.context_elements[:] = [text]

        if model is None or (model.allows("write", enrolment) and model.allows("read", enrolment) and not orphan):
            assert self.bank.mutate(key, block).context_elements == [text]
            assert seen[-1] == ([self.pages[key]] if key in self.pages else [])
            self.pages[key] = text
        else:
            with pytest.raises(ContextAccessDenied):
                self.bank.mutate(key, block)
            assert seen == []

    @rule(key=KEY)
    def delete_page(self, key):
        enrolment, model = self.enrolled.get(key), self.model
        orphan = key in self.enrolled and key not in self.pages
        if model is None or (model.allows("delete", enrolment) and not orphan):
            assert self.bank.delete(key) == (key in self.pages)
            self.pages.pop(key, None)
            self.enrolled.pop(key, None)
        else:
            with pytest.raises(ContextAccessDenied):
                self.bank.delete(key)

    @rule()
    def list_pages(self):
        assert set(self.bank.page_keys()) == self.listed(self.model)

    def listed(self, model):
        return {key for key in self.pages if model is None or model.allows("list", self.enrolled.get(key))}

    # -- administration -----------------------------------------------------------

    @precondition(lambda self: not self.models)
    @rule(key=KEY, enrolment=ENROLMENT)
    def enrol(self, key, enrolment):
        self.bank.admin().register_resource_metadata(key, ResourceMetadata(KIND, *enrolment))
        self.enrolled[key] = enrolment

    @precondition(lambda self: not self.models)
    @rule(key=KEY)
    def unenrol(self, key):
        assert self.bank.admin().delete_resource_metadata(key, KIND) == (key in self.enrolled)
        self.enrolled.pop(key, None)


CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


class TestScopes(Scopes.TestCase):
    settings = settings(max_examples=15, stateful_step_count=30, deadline=None, suppress_health_check=CHECKS)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
class TestScopesAtFullSize(Scopes.TestCase):
    """100,000 steps."""

    settings = settings(max_examples=2000, stateful_step_count=50, deadline=None, suppress_health_check=CHECKS)
