"""A question stays one whatever verbs are in it, and an order whatever it says of questions."""

import pytest

from agentflow.core.routing import Routing
from agentflow.core.task import Phase
from agentflow.routing.classify import classify
from agentflow.routing.clauses import load_table

TABLE = load_table(Routing())

QUESTIONS = """
hi, where are discounts computed
the total is wrong, where is it computed?
In what order do pre_load, field validators, validates and validates_schema hooks run?
How does the parser handle quotes, and where would I add support for tabs?
Which of set, get and delete checks the key?
When are open, close and flush called?
What happens if I remove, rename or move a file while it is being read?
Why does `make test` build everything, run lint and then fail?
Does the cache update, replace or drop old entries?
Is there a way to add, remove and replace hooks at runtime?
Are writes flushed, and do they return before the disk has them?
Can you tell me how create, update and delete differ?
Could you explain what fix_paths does, and when it would return None?
Would it be hard to add a --json flag, and which files would change?
Should we use a lock here, or handle it with a queue?
Who calls `Session.close()`, set and reset?
How do I add a new command, and where are the existing ones registered?
Where is the discount set, updated and applied?
What is the difference between remove() and delete(), and which should I use?
Has anything changed in how add works, or does it still return a list?
Do tests use a real database, or create one in memory?
Why is `total` called twice: once in add and once in update?
Which functions write to disk, make network calls, or change global state?
What would break if I change the type of id, and how could I test it?
Under which conditions does retry stop, raise or return the last error?
For which inputs does parse() raise, return None and log a warning?
At what point are settings read, merged and validated?
With which versions of Python does this build, install and run?
From where does the loader get, set and update paths?
To what extent do the tests cover add, remove and update?
How are errors handled, logged and returned to the client?
explain how open, read and close work
What does "fix, add or remove" mean in the changelog?
Is `update(a, b)` safe to call, then delete the key and add it again?
Do I need to run migrate, set the version and build the docs before a release?
How come the build fails on CI, and does it pass locally?
Am I right that Cache.set replaces the old value, and get removes expired ones?
If I call close twice, does it raise, return or ignore the second call?
In pages.py, why does pages() return one too few, and does add use it?
how does add work and what does remove return
what happens when write fails, then retry and flush are called?
Which is faster: add or update?
How are add, remove and update implemented?
What does load, dump and validate return?
What's the point of _merge, and can it drop entries, replace them or raise?
Why do we retry, log the error and then raise it again?
Why is the file opened, written and never closed?
Could someone explain how locks are taken, released and cleaned up?
I'd like to know how write, sync and close are ordered. Is there a doc?
Is it OK to delete the folder, rebuild the index and restart?
Where does Router add, match and remove routes?
Did the last commit change how we parse dates, or add a cache?
Can pages() ever return 0, raise, or loop forever?
Will update() create missing keys, or raise?
Can I call close(), then open() and use it again?
Which tests create files, remove them and leave others behind?
Show me how to add a plugin, remove one and list them?
Does `git_root()` follow links, resolve `..` and return bytes?
If I pass None, does it raise, remove the file and return?
What breaks when I upgrade, remove the shim and run the tests?
Are there functions that read, write or delete files outside the root?
By what rule is a name split, merged or dropped?
Why doesn't `add` handle negative numbers?
What should I set, remove or rename to silence the warning?
In pages.py, does pages() round up, or drop the last page and return?
In what order are create, update and delete called?
"""

CHANGES = """
pages() should take a size, where 0 means all
slugify should take a limit, which cuts at a word
safe_join(root, path) should refuse a path, where the result leaves root
fix has() in index.js: keys that an object only inherits, such as toString, are no keys
has() in index.js must ignore what an object inherits: has({}, 'toString') is false
let has() in index.js ignore what an object inherits
can() in perms.py lets guests in: they must not
explain() in plan.py prints twice
Add is_settled(a, b) to ledger/book.py: whether nothing is left to pay. With tests.
Fix total in kit.py: why does it add one to an empty list?
Add a function `is_even` that tells whether a number is even
Write how_many(text) in words.py: what it returns is the number of words.
Can you fix the off-by-one in pages()?
Could you please add a --json flag to the list command?
Would you mind adding tests for parse()?
Why does the login test fail? Fix it.
Why does total add one? Fix it, and add a test.
The parser crashes on empty input. Can you fix that?
Please make `load` return None when the file is missing, and add a test
Implement which(name) in finder.py: where the first match lies on the path.
Rename set_value to put_value everywhere, please.
Can you make the tests pass?
Could you rename `get` to `fetch` and update the callers?
What does total do? It should not add one. Change it so that it returns the sum.
Add a method when_due(): when the next payment is due, or None.
Add `who_owns(path)`: who owns the file. Raise KeyError if nobody does.
In kit.py, change total so that it no longer adds one
When the list is empty, return 0 instead of raising
Remove the unused import in kit.py. Is it used anywhere else? If not, remove it there as well.
total() returns one too much for every input
It would be great if you could add a retry to fetch()
I want to know why total is wrong and I want you to fix it
Fix the typo in the comment of kit.py
Replace print with logging in server.py; how it looks does not matter.
Let has_key(k) in store.py return whether the key is there
pages.py: fix the rounding, does not matter how
Make Cache.get raise KeyError if the key is missing, is expired or was removed
Will you update the README, and add an example of `load`?
Convert `is_open` to a property: does it have to be called? No.
Support `with` in Lock: whether it is held is told by locked().
Write tests for has_paid(): does it return False for an open bill?
Handle the case where close is called twice
Create a script that shows which files changed, where and when.
Find out why the test fails and fix it
please could you have a look at why add(2, 3) gives 6, and fix it?
Why don't we cache the result of load()? Please add that.
Can we get rid of the global state in config.py?
Can the --verbose flag be added to list as well? Please do it.
Extend parse(): what is quoted must keep its spaces.
Do the same for remove() as for add(): check the key first
Is there a reason total adds one? If not, fix it.
fix: how dates are parsed in reports.py
Sort the entries by when they were added
Print where the log file lies at the end of a run
Document what each setting does in the README
Let users choose which columns to print?
Would you fix the rounding in pages.py, please?
Can you please explain in the README how to add a plugin?
Why is total wrong? Please correct it and explain what was wrong.
Could we add a cache to load(), and remove the old one?
why does the test fail, can you fix it?
What is wrong with pages()? Make it round up.
Is the cache ever cleared? It should be after update(). Add that.
Implement `should_retry(error)`, is it a timeout or a 503?
Add `is_empty`, `has_items` and `was_closed` to Queue
Return what_changed(a, b) from diff.py: how the two differ
Let `can_read(path)` be true for root. Where is it used? Update the callers.
The function should_stop is never called, call it in loop()
do_work() crashes when the list is empty
is_settled(bill) returns the wrong value for refunds
has_next raises StopIteration, it should return False
Delete how_to.py and where_is.py
Could you do input validation in parse()?
Can you write a docstring for is_settled?
Please check that add() rejects strings; if not, make it do so
Fix which() on Windows
Update who_am_i() so that it returns the name, not the id
Move is_open, is_closed and is_empty into state.py
In what order the hooks run matters: make before_save run first.
pages should round up. Can you see why it does not, and repair it?
Let me choose what color is used. Add --color to cli.py.
"""


@pytest.mark.parametrize("text", QUESTIONS.strip().splitlines())
def test_a_sentence_that_begins_and_ends_as_a_question_is_one(text: str) -> None:
    assert Phase.IMPLEMENTATION not in classify(text, TABLE).steps


@pytest.mark.parametrize("text", CHANGES.strip().splitlines())
def test_an_order_to_change_something_is_one_whatever_it_describes(text: str) -> None:
    assert Phase.IMPLEMENTATION in classify(text, TABLE).steps
