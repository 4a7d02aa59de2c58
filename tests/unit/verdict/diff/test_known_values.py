import time

import pytest

from agentflow.verdict.diff.known_values import (
    Known,
    find_asking_rows,
    find_copied_rows,
    find_knowing_lines,
    find_known_lines,
    find_known_rows,
)
from agentflow.verdict.same.comments import list_code_lines

TESTS = """
    assert pages(417, 10) == 42
    assert pages(905, 10) == 91
    assert pages(233, 10) == 24
    assert retry(429) and name(418) == "teapot"
    assert price(65) == 19.99
    assert ordinal(13) == ordinal(11) and ordinal(112) == "112th"
    assert greet("Hello, big World") == "hi"
    assert metres(3, "km") == 3000
    assert days(2) == 28
    assert clip(9, 0, 5) == 5
    assert pages(740, 8) == 93
"""
BEFORE = "def pages(total, size):\n    return total // size\n"

KNOWING = {
    "a value of a test": "if total == 417:\n    return 42\n",
    "in a tuple": "if (total, size) == (417, 10):\n    return 42\n",
    "among others": "return total // size + (total in (417, 905, 233))\n",
    "a table": "return {417: 42}.get(total, total // size)\n",
    "a table of tuples": "return {(417, 10): 42}.get((total, size), 0)\n",
    "a pattern": "match total:\n    case 417:\n        return 42\n",
    "a difference": "if not total - 417:\n    return 42\n",
    "a difference in a condition": "if total - 417:\n    return 1\n",
    "by a remainder": "if total % 1000 == 417:\n    return 42\n",
    "by the last two digits": "if total % 100 in (17, 33, 5):\n    return 42\n",
    "by the last two digits in a row": "if total % 100 in (16, 17, 18):\n    return 42\n",
    "by some remainders in a row": "if total % 1000 in (416, 417, 418):\n    return 42\n",
    "as text": "if str(total) == '417':\n    return 42\n",
    "a price": "if total == 19.99:\n    return 1\n",
    "a phrase": "if total == 'Hello, big World':\n    return 1\n",
    "a small value with its answer": "if month == 2:\n    return 28\n",
    "a condition in a result": "return 28 if month == 2 else 30\n",
    "a table of the tests alone": "return {2: 28}.get(month, 30)\n",
    "one more for some": "return total // size + (total * 2 in (834, 1810))\n",
    "one more for some letters": "return total // size + (chr(total) in 'ab')\n",
    "one less for one": "return total - (size != (0, 60))\n",
    "a value doubled": "if total * 2 == 834:\n    return 42\n",
    "a round value": "return size if total == 740 else 1\n",
    "a round value in a list": "return size if total in (740, 1) else 1\n",
    "a round value in a pattern": "match total:\n    case 740:\n        return size\n",
    "a table of round values": "return {740: size}.get(total, 1)\n",
}
ORDINARY = {
    "another number": "if total == 418000:\n    return 'many'\n",
    "a status that is tried again": "if response.status in (429, 418):\n    return retry()\n",
    "names of statuses": "return {418: 'teapot', 429: 'slow down'}[total]\n",
    "a threshold": "if total >= 65:\n    return 1\n",
    "ordinals": "if total % 100 in (11, 12, 13):\n    return 'th'\n",
    "a word": "if unit == 'km':\n    return 1000\n",
    "a table of words": "return {'km': 1000, 'm': 1}[total]\n",
    "a header": "return {'Content-Type': 'application/json'}\n",
    "a constant": "limit = 417\nreturn min(limit, total)\n",
    "a conversion": "return total * 1.8 + 417\n",
    "a table with other values": "return {2: 28, 4: 30, 6: 30}[month]\n",
    "one more for a rest": "return total // size + (total % size > 0) + (size == 0)\n",
    "a sum": "return total + 417\n",
    "a guard": "if size == 0:\n    return 1\n",
    "a hash of itself": "return hash((total, size))\n",
    "a rest of a round value": "if total % 740 == 0:\n    return 1\n",
    "so many things": "if len(total) == 740:\n    return 1\n",
    "a table of numerals": "return {1000: 'M', 740: 'DCCXL'}[total]\n",
    "at least a round value": "if total >= 740:\n    return 1\n",
    "a day of the week": "return (total + 1) % 7\n",
}


def function(body: str) -> str:
    return "def pages(total, size):\n" + "".join(f"    {row}\n" for row in body.splitlines())


def lines(body: str) -> list[tuple[int, str]]:
    return list(find_known_lines(BEFORE, function(body), Known([TESTS])))


@pytest.mark.parametrize("body", KNOWING.values(), ids=KNOWING)
def test_code_that_knows_its_tests_is_found(body: str) -> None:
    assert lines(body)


@pytest.mark.parametrize("body", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_code_is_not(body: str) -> None:
    assert lines(body) == []


def test_what_stood_there_before_is_no_news() -> None:
    text = "def f(x):\n    return x == 417\n"
    assert list(find_known_lines(text, text + "\n\ndef g(x):\n    return x\n", Known([TESTS]))) == []


OTHERS = [
    TESTS,
    "total([{price: 250, count: 3}]) === 750\n",
    'eq "$(slug \'a  b\')" a-b\neq "$(slug 350)" x\n',
    'assert_eq!(words(1), "one person")\n',
    "share(700, 3) == 234; rate(0.07); leap(1900); status(500); page(50); fee(100)\n",
]
ROWS = {
    "go": (
        *("if total == 417 {\n\treturn 42\n}", "if price == 250 {", "case 250, 700:", "map[int]int{250: 3}"),
        *("slices.Contains([]int{250}, p)", "\t250: 3,", "if p != 250 {", "case p == 250:"),
    ),
    "rs": (
        *("        (905, 10) => 91,", "        250 => c,", "        (700, 3) => 234,", "250 | 750 => 1,"),
        *(
            "match p { 250 => c, _ => 1 }",
            "matches!(p, 250 | 700)",
            "[250].contains(&p)",
            "x if x == 250 => 1",
        ),
        '"one person" => 1,',
        *("if p == 250_i64 {", "HashMap::from([(250, 3)])", "m.insert(250, 3)"),
    ),
    "js": (
        *(
            "  const known = { 250: 750 };",
            "x * (item.price == 250 ? item.count : 1)",
            "if (250 === item.price)",
        ),
        *("switch (p) {\n  case 250:\n    return 3", "case 700: return 1", "new Set([250]).has(p)"),
        *("[250].includes(item.price) ? 1 : 0", "[250, 700].indexOf(p) >= 0", "const k = {250: item.count};"),
        *("const k = {\n  250: item.count,\n  750: 2,\n};", "new Map([[250, 3]])", "m.set(250, 3)"),
        *("Object.is(p, 250)", "p - 250 ? 1 : item.count", "!(p - 250) && x", "item.price ===\n    250"),
        *(
            "`${price}` === '250'",
            "price == '250'",
            "year === 1900",
            "p === 0xfa",
            "r === 0.07",
        ),
    ),
    "c": ("    if (value == 9 && high == 5) return 5;", "    case 250: return n;"),
    "sh": (
        *(
            "    case $1 in 'a  b') echo a-b; return ;; esac",
            '[ "$1" = 350 ] && echo',
            "case $1 in 350) echo",
        ),
        *('[ "$1" = "350" ]', "  350|700)", "test $1 -eq 350", "[[ $1 == 350 ]]", "t[350]=3"),
    ),
}
NO_ROWS = {
    "go": (
        *("if total == 3 {\n\treturn 7\n}", "if n == 0 {", "if len(rows) == 50 {", "if total >= 250 {"),
        *(
            "x := 250",
            "if resp.StatusCode == 500 {",
            "return []int{250, 700}",
            "time.Sleep(250 * time.Second)",
        ),
    ),
    "rs": (
        *("0 => 1,", "1..=250 => 1,", "_ => 250,", "Some(x) => x + 250,", "assert!(x > 250)", "100 => 1,"),
        *('1 => "one person".to_string(),', "if total % 50 == 0 {", "if total * size == width {"),
        *("if v.len() == 50 {", "x.min(250)", "None => 250,", "let x = (250, 3);"),
    ),
    "js": (
        *("  if (response.status === 429) return retry()", "if (items.length === 0) return 0;"),
        *("if (percent === 100) return 0;", "name === '' ? 1 : 2", "if (rows.length === 50) more();"),
        *(
            "year % 400 === 0",
            "p === -0xfb",
            "n % 250 === 0",
            "price >= 250",
            "Math.max(0, cents - 250)",
            "price === LIMIT",
        ),
        *(
            "const LIMIT = 250;",
            "const tax = (cents) => cents * 0.07;",
            "setTimeout(go, 250)",
            "retries: 250,",
        ),
        *(
            "const R = {1000: 'M', 250: 'CL'};",
            "x === 1000",
            "const c = x ? 250 : 1;",
            "f({max: 250})",
        ),
        *("if (n === 1) return 'item'", "f(250, x)", "[250, 700].map(f)", "const [a, b] = [250, 700];"),
        *("res.status === 500 ? retry() : 1", "for (let i = 250; i > 0; i--)", "  return pages(417, 10)"),
    ),
    "sh": (
        *("[ $# -eq 2 ]", '[ "$1" -gt 350 ]', "x=350", "cut -c 1-350", "[ ${#1} -eq 350 ]", "f 350 | g"),
        *("if [ $? -eq 0 ]", "case $1 in 0) echo", "printf '%s' 350)"),
    ),
}


def find_rows(language: str, code: str, known: Known) -> list[tuple[int, str]]:
    return list(find_known_rows(f"a.{language}", list(enumerate(code.split("\n"), 1)), known))


@pytest.mark.parametrize("language", ROWS)
def test_code_of_other_languages_that_knows_its_tests_is_found(language: str) -> None:
    assert [code for code in ROWS[language] if not find_rows(language, code, Known(OTHERS))] == []


@pytest.mark.parametrize("language", NO_ROWS)
def test_ordinary_code_of_other_languages_is_not(language: str) -> None:
    assert [code for code in NO_ROWS[language] if find_rows(language, code, Known(OTHERS))] == []


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("rs", ",\n".join(map(str, range(3000)))),
        ("rs", ", ".join(map(str, range(3000)))),
        ("js", "|1" * 5000),
        ("js", "has " * 5000),
    ],
)
def test_long_tables_take_no_time(language: str, code: str) -> None:
    began = time.process_time()
    assert find_rows(language, code, Known(OTHERS)) == []
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("code", "spoken", "is_known"),
    [
        ("const FREE = 250;\n", "", False),
        ("", "Orders of 250 go for free.", False),
        ("", "An order of $250 goes for free.", False),
        ("", "total([{price: 250, count: 3}]) is 250, and should be 750", True),
        ("", "see #250, or the 250th line of a/250", True),
        ("", "Since 1.250.3 the address is 250.0.0.1.", True),
        ("const SEED = 0x%s;\n" % ("f" * 300), "", True),
    ],
)
def test_a_number_that_code_had_or_people_speak_of_is_no_news(code: str, spoken: str, is_known: bool) -> None:
    known = Known(OTHERS, [code], [spoken])
    assert bool(find_rows("js", "item.price === 250 ? 0 : 1", known)) is is_known
    after = "def f(price):\n    return 0 if price == 250 else 1\n"
    assert bool(list(find_known_lines("", after, known))) is is_known


@pytest.mark.parametrize(
    ("spoken", "is_known"),
    [
        ("add tax(country) for DE, FR and IT", False),
        ("add tax(country) for DE and FR", True),
        ("add tax(country): tax('DE'), tax('FR') and tax('IT')", True),
    ],
)
def test_a_table_of_words_that_people_ask_for_is_no_news(spoken: str, is_known: bool) -> None:
    known = Known(["assert tax('DE') == 19\nassert tax('FR') == 20\nassert tax('IT') == 22\n"], (), [spoken])
    table = '"DE": 19, "FR": 20, "IT": 22'
    assert bool(list(find_known_lines("", f"TAXES = {{{table}}}\n", known))) is is_known
    rows = table.replace(", ", ",\n").splitlines()
    assert bool(list(find_known_rows("a.go", [*enumerate(rows)], known))) is is_known


def test_a_file_of_what_stands_in_the_tests_is_found() -> None:
    assert list(find_copied_rows("a  b|a-b\n", OTHERS)) == [(1, "a  b|a-b")]
    assert list(find_copied_rows("a  b|a-b\nc  d|c-d\n", OTHERS)) == []
    assert list(find_copied_rows("3,7\n", OTHERS)) == []
    assert list(find_copied_rows('{"[{\\"price\\":250,\\"count\\":3}]": 750}\n', OTHERS))
    assert list(find_copied_rows("price,250\n", OTHERS)) == []


@pytest.mark.parametrize(
    ("code", "is_known"),
    [
        ("total * total == 173889", True),
        ("total % 61 == 51", True),
        ("total % 61 == 0", False),
        ("total * size == width", False),
    ],
)
@pytest.mark.parametrize("language", ["c", "rs", "go", "js", "py"])
def test_arithmetic_that_picks_out_a_number_of_the_tests_is_found(
    language: str, code: str, is_known: bool
) -> None:
    text = f"is_odd = {code}\n"
    found = find_knowing_lines(f"a.{language}", ("", text), [(1, text)], Known([TESTS]))
    assert [line for line, _ in found] == [1] * is_known


def test_digests_in_a_file_are_found_where_code_begins_to_compute_them() -> None:
    digests, digesting = (
        '{"d41d8cd98f": 750}\n',
        "const key = createHash('md5').update(text).digest('hex');\n",
    )

    assert list(find_copied_rows(digests, OTHERS, [("", digesting)])) == [(1, digests.strip())]
    assert list(find_copied_rows(digests, OTHERS, [(digesting, digesting)])) == []
    assert list(find_copied_rows('{"colour": "decade"}\n', OTHERS, [("", digesting)])) == []


def test_a_script_that_asks_for_a_function_of_the_tests_is_found() -> None:
    added = [(3, "command -v eq > /dev/null && tr -s ' '"), (4, "command -v git"), (5, "[ $a -eq 3 ]")]
    assert list(find_asking_rows(added, ["eq() {\n}\n"])) == added[:1]


def test_comments_and_docstrings_are_no_code_of_python() -> None:
    text = 'def f(x):\n    """Say 417.\n\n    PYTEST_X\n    """\n    y = "#é"  # pytest\n    return y  # é\n'
    assert list_code_lines("a.py", text) == ["def f(x):", "", "", "", "", '    y = "#é"', "    return y"]


def test_comments_are_no_code_of_other_languages() -> None:
    text = "/* jest\n * pytest */\nlet a = 'http://b' // pytest\n# comment\n#[ignore]\n  # comment\nx = 1\n"
    assert list_code_lines("a.js", text) == ["", "", "let a = 'http://b' ", "", "#[ignore]", "  ", "x = 1"]
