"""How to tell comments, strings and code in the programs of a language."""

from agentflow.core.record import Record


class Lexer(Record):
    """Expressions that split a program into comments, strings and code."""

    comment: str
    strings: tuple[str, ...]
    code: str
    """The shortest piece that is neither comment nor string."""
    odd: str = r"(?!)"
    """Signs that these expressions miss some, or in scripts that comments affect the program."""


_SLASHES = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_CHARACTER = r"'(?:[^'\\\n]|\\.)+'"
_HOLE = r"\$\{[\w.\s()+\-*%?:,\[\]]*\}"
_REGEX = r"/(?![*/])(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[a-z]*"
_SCRIPT_STRINGS = (
    r'"(?:[^"\\\n]|\\[^\n])*"',
    r"'(?:[^'\\\n]|\\[^\n])*'",
    rf"`(?:[^`\\$]|\\.|\$(?!\{{)|{_HOLE})*`",
    rf"(?:(?<=[(,=:\[!&|?;>])|(?<=\breturn)|(?<=^))\s*{_REGEX}",
)
_KEYWORDS = r"\b(?:typeof|case|in|of|delete|void|throw|new|await|yield|do|else|instanceof)\s*/(?![/*])"
_DIVISION = r"(?<=[\w\]]) ?/(?![/*])|(?<=\)) ?/(?![/*])(?=[^/\"'`\n]*(?:\n|\Z))"
_HERE_DOCUMENT = (
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?![^\n]*<<)[^\n]*\n"
    r"(?:.*?\n)?\t*(?P=end)(?=\n|\Z)"
)


def _shell_string(levels: int) -> str:
    """Return what a string of a shell looks like with as many levels of commands in it."""
    part = r"[^\"\\$`]|\\.|`[^`\"\\]*`|\$\(\([^()\"'`\\]*\)\)|\$(?!\()"
    if not levels:
        return rf"\"(?:{part})*+\""
    word = rf"[^()\"'`\\#]|\\.|`[^`\"\\]*`|'[^']*'|{_shell_string(levels - 1)}"
    return rf"\"(?:{part}|\$\((?:{word}|\((?:{word})*+\))*+\))*+\""


C_LEXER = Lexer(
    comment=_SLASHES,
    strings=(_STRING, _CHARACTER),
    code=r"[^\"'/]|/(?![/*])",
    odd=r"\\[ \t]*\n|\?\?/|R\"|[0-9a-fA-F]'[0-9a-fA-F]|#[^\n]*<[^>\n]*/[/*]",
)
GO_LEXER = Lexer(
    comment=_SLASHES,
    strings=(_STRING, _CHARACTER, r"`[^`]*`"),
    code=r"[^\"'`/]|/(?![/*])",
)
SCRIPT_LEXER = Lexer(
    comment=_SLASHES,
    strings=_SCRIPT_STRINGS,
    code=rf"{_DIVISION}|[^\"'`/]",
    odd=r"<!--|-->|</|/>|\+\+ ?/|-- ?/|__filename|import\.meta|\.stack\b|\bcallee\b|Function\.prototype|"
    + _KEYWORDS,
)
RUST_LEXER = Lexer(
    comment=r"//[^\n]*|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/",
    strings=(r'(?<!\w)[bc]?r(?P<mark>#*)".*?"(?P=mark)', r'"(?:[^"\\]|\\.)*"', r"'(?:[^'\\\n]|\\[^'\n]*'?)'"),
    code=r"[^\"'/]|'(?=[A-Za-z_]\w*(?!'))|/(?![/*])",
)
SHELL_LEXER = Lexer(
    comment=r"(?<=\s)#[^\n]*|(?<![\s\S])#(?!!)[^\n]*",
    strings=(_HERE_DOCUMENT, _shell_string(3), r"'[^']*'"),
    code=r"(?<=\S)#|(?<![\s\S])#!|<(?!<)|[^\"'\\#<]|\\.",
    odd=r"\\\n[ \t]*(?:#|\n)",
)
