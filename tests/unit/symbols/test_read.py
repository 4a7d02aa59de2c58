import pytest

from agentflow.symbols.read import find_occurrences, read_symbols

PYTHON = """
import os.path as p
from x.y import z
A = 1
class K(B):
    f: int = 3
    def m(self,
          a):
        def inner(): pass
        return z(a)

@deco
def g(): return K().m(2)
"""
GO = """package p
import "net/http"
type S struct { A int }
func (s *S) Do() error { return fmt.Errorf("Do") }
func main() { S{}.Do() }
"""
JAVASCRIPT = """import {a} from './lib/b';
const q = require('x');
export const f = (a) => {
  return a.b();
};
class C { m() { function inner() {} } }
module.exports.foo = function () {};
"""
TYPESCRIPT = """interface I { a: string }
export abstract class C<T> implements I { private x = 1; m(): void {} }
type T = number;
enum E { A }
"""
RUST = """use std::fmt;
pub struct S { a: u8 }
impl fmt::Display for S {
    fn fmt(&self) -> u8 { self.a }
}
pub trait T { fn t(&self); }
macro_rules! mm { () => {} }
"""
C = """#include "a/b.h"
#define N 3
struct s { int a; };
int *f(int a) { return g(a); }
"""
CPP = """namespace n {
class C : public B {
  int m(int a) { return a; }
};
void C::d() { m(1); }
}
"""
JAVA = """import a.b.C;
public class A extends C {
  int f = 1;
  A() {}
  public void m(int a) { C.x(); }
}
"""
RUBY = """require 'x/y'
module M
  class K < B
    X = 1
    def m(a)
      foo(a)
    end
  end
end
"""
SHELL = """source lib.sh
X=1
f() {
  ls $X
}
"""
DEFINED = {
    "a.py": (PYTHON, "A:4 K:5 K.f:6 K.m:7 (K.inner):9 g:13", "deco os"),
    "a.go": (GO, "S:3 S.A:3 Do:4 main:5", "Errorf"),
    "a.js": (JAVASCRIPT, "f:3 C:6 C.m:6 (C.inner):6 foo:7", "exports"),
    "a.tsx": (TYPESCRIPT, "I:1 I.a:1 C:2 C.x:2 C.m:2 T:3 E:4", ""),
    "a.ts": (TYPESCRIPT, "I:1 I.a:1 C:2 C.x:2 C.m:2 T:3 E:4", ""),
    "a.rs": (RUST, "S:2 S.a:2 S.fmt:4 T:6 T.t:6 mm:7", "Display std"),
    "a.c": (C, "N:2 s:3 s.a:3 f:4", ""),
    "a.cpp": (CPP, "n:1 n.C:2 C.m:3 n.d:5", ""),
    "A.java": (JAVA, "A:2 A.f:3 A.A:4 A.m:5", ""),
    "a.rb": (RUBY, "M:2 M.K:3 K.X:4 K.m:5", "foo"),
    "a.sh": (SHELL, "X:2 f:3", "ls"),
}


@pytest.mark.parametrize("path", DEFINED)
def test_what_a_file_defines_and_uses(path: str) -> None:
    text, defined, used = DEFINED[path]
    found = read_symbols(path, text.encode())
    told = [f"{each.owner}.{each.name}".removeprefix(".") for each in found.definitions]
    shown = [
        f"({name}):{each.first}" if each.is_local else f"{name}:{each.first}"
        for name, each in zip(told, found.definitions, strict=True)
    ]
    assert " ".join(shown) == defined
    assert {*used.split()} <= {*found.uses}


def test_a_signature_may_have_several_lines() -> None:
    found = {each.name: each for each in read_symbols("a.py", PYTHON.encode()).definitions}
    assert [(each.first, each.head, each.last) for each in (found["m"], found["g"])] == [
        (7, 8, 10),
        (13, 13, 13),
    ]


@pytest.mark.parametrize(
    ("path", "content"),
    [("a.py", b"def f(): pass\0"), ("a.js", b"var a=1;" * 5000), ("a.txt", b"def f(): pass")],
)
def test_what_no_person_wrote_as_source_is_left_out(path: str, content: bytes) -> None:
    assert read_symbols(path, content).definitions == ()


def test_a_name_in_a_text_or_comment_is_no_use() -> None:
    text = 'def add(a): pass  # add\nx = "add"\nadd(1)\nother.add(2)\n'
    found = find_occurrences("a.py", text, "add")
    assert [(each.line, each.is_definition) for each in found] == [(1, True), (3, False), (4, False)]
