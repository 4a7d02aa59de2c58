"""The routing table: what is shipped, and what the user's settings add."""

from pathlib import Path

from agentflow.core.errors import ConfigError
from agentflow.core.record import Record
from agentflow.core.routing import Requirement, Routing
from agentflow.core.task import Complexity, Phase
from agentflow.frontmatter import read_yaml

Words = tuple[str, ...]


class FileWords(Record):
    """The signs by which a file is recognised in a text."""

    suffixes: Words
    names: Words
    never: Words


class Orders(Record):
    """The signs that a verb of reading orders a change."""

    verbs: Words
    signs: Words
    asks: Words


class Fill(Record):
    """The signs that text of a file is asked for."""

    verbs: Words
    makers: Words
    places: Words
    told: Words


class Table(Record):
    """The whole of routing.yaml, where each key is explained."""

    routing: Routing
    heads: dict[str, Words]
    fill: Fill
    yours: Words
    orders: Orders
    polite: Words
    requests: Words
    kinds: dict[str, Words]
    wide: Words
    report: Words
    files: FileWords
    weights: dict[str, int]
    signs: dict[str, Words]
    readings: dict[str, Words]
    split_advice: str
    known: Words
    hollow: Words
    english: Words

    def list_required(self, complexity: Complexity, route: str = "") -> tuple[Requirement, ...]:
        """Return what a change of a class has to pass; a route with a review requires one."""
        wanted = self.routing.requires.get(complexity, ())
        steps = self.routing.routes.get(route, ())
        is_reviewed = {Phase.IMPLEMENTATION, Phase.REVIEW} <= {*steps}
        return tuple(dict.fromkeys((*wanted, Requirement.REVIEW))) if is_reviewed else wanted

    def list_steps(self, route: str, complexity: Complexity) -> tuple[Phase, ...]:
        """Return the phases whose role runs, in order; a review that the class requires is among them."""
        wanted = {*self.routing.routes[route]}
        if Phase.IMPLEMENTATION in wanted and Requirement.REVIEW in self.list_required(complexity):
            wanted.add(Phase.REVIEW)
        return tuple(phase for phase in Phase if phase in wanted)


def load_table(extra: Routing) -> Table:
    """Return the shipped table with what the settings add to it. Raises ConfigError."""
    shipped = Path(__file__).with_name("routing.yaml").read_text("utf-8")
    table = read_yaml(Table, shipped, "routing.yaml")
    routing = table.routing.extend(extra)
    for rule in routing.complex_when:
        if rule.route not in routing.routes:
            known = ", ".join(routing.routes)
            raise ConfigError(
                f"routing.complex_when: {rule.reason}: there is no route {rule.route}",
                hint=f"routes: {known}",
            )
    return table.replace(routing=routing)
