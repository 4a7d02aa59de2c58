"""NotebookEdit: change one cell of a Jupyter notebook."""

import json
import re
from enum import StrEnum
from typing import Any

from agentflow.core.errors import InvalidInput
from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.tools.files import FilePath, require_writable

_INDENT = re.compile(r"\n([ \t]+)\"")
_PLACE = re.compile(r"cell-(\d{1,6})")


class CellType(StrEnum):
    CODE = "code"
    MARKDOWN = "markdown"


class CellEdit(StrEnum):
    REPLACE = "replace"
    INSERT = "insert"
    DELETE = "delete"


class NotebookEditInput(Record):
    notebook_path: FilePath
    new_source: str
    cell_id: str | None = None
    cell_type: CellType | None = None
    edit_mode: CellEdit = CellEdit.REPLACE


def edit_notebook(wanted: NotebookEditInput, context: ToolContext) -> Output:
    """Replace, delete or insert a cell of a notebook, by its id or as cell-N from 0; insert is behind it."""
    path = context.workspace.to_relative(wanted.notebook_path)
    text = context.workspace.read(path).decode("utf-8", "replace")
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
        ids = [cell.get("id") for cell in cells]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"{path} is no notebook with cells") from None
    place = _find_cell(wanted, path, ids)
    match wanted.edit_mode:
        case CellEdit.REPLACE:
            cells[place] = _change(cells[place], wanted)
        case CellEdit.INSERT:
            new = {"cell_type": wanted.cell_type or CellType.CODE, "metadata": {}, "source": []}
            names = (f"new-{number}" for number in range(len(ids) + 1))
            named = {"id": next(name for name in names if name not in ids)} if any(ids) else {}
            cells.insert(place + 1, _change({**named, **new}, wanted))
        case CellEdit.DELETE:
            del cells[place]
    require_writable(path, context.role)
    indent = _INDENT.search(text)
    told = json.dumps(notebook, indent=indent[1] if indent else None, ensure_ascii=text.isascii())
    context.workspace.write(path, f"{told}{chr(10) * text.endswith(chr(10))}".encode())
    return Output(content=f"{wanted.edit_mode}: {path}, which has {len(cells)} cells now")


def _find_cell(wanted: NotebookEditInput, path: str, ids: list[Any]) -> int:
    """Return the place of the named cell; -1 for an insertion at the begin."""
    if wanted.cell_id is None:
        if wanted.edit_mode is CellEdit.INSERT:
            return -1
        raise InvalidInput("cell_id: names the cell to change")
    if wanted.cell_id in ids:
        return ids.index(wanted.cell_id)
    found = _PLACE.fullmatch(wanted.cell_id)
    if found is None or int(found[1]) >= len(ids):
        named = ", ".join(str(known or f"cell-{place}") for place, known in enumerate(ids[:20]))
        raise InvalidInput(f"{path} has no cell {wanted.cell_id}; there are: {named or 'none'}")
    return int(found[1])


def _change(cell: dict[str, Any], wanted: NotebookEditInput) -> dict[str, Any]:
    """Return a cell with another source, and without what the old one gave."""
    kind = wanted.cell_type or cell.get("cell_type", CellType.CODE)
    is_list = not isinstance(cell.get("source"), str)
    source: Any = wanted.new_source.splitlines(keepends=True) if is_list else wanted.new_source
    kept = {key: value for key, value in cell.items() if key not in ("outputs", "execution_count")}
    ran: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == CellType.CODE else {}
    return {**kept, "cell_type": str(kind), "source": source, **ran}


NOTEBOOK_EDIT = Tool(
    name="NotebookEdit",
    category=Category.FS,
    effect=Effect.WRITE,
    input=NotebookEditInput,
    call=edit_notebook,
    subjects={"notebook_path": Subject.PATH},
    shows_file=True,
)
