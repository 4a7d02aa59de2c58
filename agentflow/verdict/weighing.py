"""What the verifier's word does to a verdict that the program computed."""

import re

from agentflow.core.caveat import Caveat
from agentflow.core.evidence import Verdict
from agentflow.core.submissions import Claim, Judgement
from agentflow.workspace.git import FileChange


def weigh(verdict: Verdict, judgement: Judgement, changed: tuple[FileChange, ...]) -> Verdict:
    """Return the verdict after the verifier spoke: its word can lower a pass, and nothing else."""
    said = "; ".join(judgement.reasons) or "no reason given"
    match judgement.verdict:
        case Claim.VERIFIED:
            return verdict
        case Claim.FAILED if judgement.evidence or _cites(judgement, changed):
            return verdict.replace(passed=False, reasons=(f"verifier: {said}",), caveats=())
        case Claim.FAILED | Claim.ENVIRONMENT_BLOCKED:
            return verdict.replace(
                caveats=(*verdict.caveats, Caveat.VERIFIER_DISAGREES),
                notes=(*verdict.notes, f"every check holds, and the verifier says without evidence: {said}"),
            )


def _cites(judgement: Judgement, changed: tuple[FileChange, ...]) -> bool:
    """Return whether a reason names a line of a changed file."""
    text = "\n".join(judgement.reasons)
    return any(re.search(rf"(?<![\w./-])(?:\./)?{re.escape(change.path)}:\d+", text) for change in changed)
