"""Todo lists: numbered tasks, and how an update may change a stored list."""

from dataclasses import dataclass, field, replace

from libctx_core.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class TodoListTask:
    """One task.

    Attributes:
        task_number: Its number, which identifies it within a list.
        task: What is to be done.
        completion_requirements: When it counts as done.
        is_complete: Whether it is done.
    """

    task_number: int
    task: str
    completion_requirements: str = ""
    is_complete: bool = False

    def __post_init__(self) -> None:
        if type(self.task_number) is not int:
            raise InvalidInputError("task_number", "must be an int")
        if type(self.task) is not str or type(self.completion_requirements) is not str:
            raise InvalidInputError("task, completion_requirements", "must be str")
        if type(self.is_complete) is not bool:
            raise InvalidInputError("is_complete", "must be a bool")


@dataclass(slots=True)
class TodoList:
    """A list of tasks.

    Attributes:
        tasks: The tasks, in order.
        work_history: What was done so far, oldest first.
        version: How often the list was stored since it was created; set by the bank.
    """

    tasks: list[TodoListTask] = field(default_factory=list)
    work_history: list[str] = field(default_factory=list)
    version: int = 0

    def copy(self) -> "TodoList":
        """Return a list that shares nothing mutable with this one."""
        return TodoList(list(self.tasks), list(self.work_history), self.version)

    def find(self, task_number: int) -> TodoListTask | None:
        """Return the task with this number, or None."""
        return next((task for task in self.tasks if task.task_number == task_number), None)

    def is_empty(self) -> bool:
        """Return whether it holds no task and no history."""
        return not (self.tasks or self.work_history)


def apply_update(
    stored: TodoList, incoming: TodoList, *, updates_only: bool = True, completions_only: bool = False
) -> TodoList:
    """Return the stored list as an incoming one changes it.

    Tasks are matched by number and keep their places. An empty stored list takes the
    incoming one whole.

    Args:
        stored: What is there.
        incoming: What was handed in.
        updates_only: Ignore tasks whose number is not there, and keep those not mentioned.
            False replaces the list.
        completions_only: Take over nothing but whether known tasks are complete.
    """
    if stored.is_empty() or not (updates_only or completions_only):
        return incoming.copy()
    changes = {task.task_number: task for task in incoming.tasks}
    tasks = [
        task
        if (change := changes.get(task.task_number)) is None
        else (replace(task, is_complete=change.is_complete) if completions_only else change)
        for task in stored.tasks
    ]
    history = stored.work_history if completions_only else (incoming.work_history or stored.work_history)
    return TodoList(tasks, list(history), stored.version)
