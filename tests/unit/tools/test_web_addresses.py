import pytest

from agentflow.core.errors import InvalidInput
from agentflow.tools.web import is_public, parse_address

ADDRESSES = {
    "93.184.215.14": True,
    "1.1.1.1": True,
    "8.8.8.8": True,
    "172.15.255.255": True,
    "172.32.0.1": True,
    "2606:4700:4700::1111": True,
    "2a00:1450:4001:812::200e": True,
    "::ffff:1.1.1.1": True,
    "127.0.0.1": False,
    "127.255.255.254": False,
    "0.0.0.0": False,
    "0.1.2.3": False,
    "10.0.0.1": False,
    "10.255.255.255": False,
    "100.64.0.1": False,
    "100.100.100.200": False,
    "168.63.129.16": False,
    "169.254.169.254": False,
    "169.254.170.2": False,
    "172.16.0.1": False,
    "172.31.255.255": False,
    "192.0.0.192": False,
    "192.0.2.1": False,
    "192.168.0.1": False,
    "198.18.0.1": False,
    "203.0.113.9": False,
    "224.0.0.1": False,
    "239.255.255.250": False,
    "240.0.0.1": False,
    "255.255.255.255": False,
    "::": False,
    "::1": False,
    "::ffff:127.0.0.1": False,
    "::ffff:169.254.169.254": False,
    "::127.0.0.1": False,
    "64:ff9b::7f00:1": False,
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": False,
    "2001:db8::1": False,
    "2002:7f00:1::": False,
    "fc00::1": False,
    "fd00:ec2::254": False,
    "fe80::1": False,
    "fe80::1%eth0": False,
    "2606:4700:4700::1111%1": False,
    "fec0::1": False,
    "ff02::1": False,
    "2130706433": False,
    "0177.0.0.1": False,
    "127.1": False,
    "": False,
}
REFUSED = (
    "http://127.0.0.1/",
    "http://[::1]:8080/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://example.org.127.1/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://\u24db\u24de\u24d2al.example/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://a.localhost/",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://intranet/",
    "http://example.org\x00.evil.net/",
    "http://example%00.org/",
    "http://exam\tple.org/",
    "http://exam\nple.org/",
    "http://example.org\\@127.0.0.1/",
    "http://me:word@example.org/",
    "http://example.org@127.0.0.1/",
    "http://@example.org/",
    "http://[::1/",
    "http://example.org:99999/",
    "http://example.org:x/",
    "http://..example.org/",
    f"http://{'a' * 64}.example.org/",
    "http:///path",
    "http://",
    "//example.org/",
    "example.org",
    "ftp://example.org/",
    "file:///etc/passwd",
    "data:text/html,x",
    "gopher://example.org/",
    "",
)


@pytest.mark.parametrize(("address", "expected"), ADDRESSES.items())
def test_only_an_address_on_the_internet_is_public(address: str, *, expected: bool) -> None:
    assert is_public(address) is expected


@pytest.mark.parametrize("url", REFUSED)
def test_what_may_not_be_asked_is_told_from_its_spelling(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"^url: "):
        parse_address(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org", "https://example.org/"),
        ("HTTPS://EXAMPLE.org.:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org:8080/%20/caf\u00e9", "http://example.org:8080/%20/caf%C3%A9"),
        ("http://1.1.1.1/", "http://1.1.1.1/"),
        ("https://[2606:4700:4700::1111]:443/x", "https://[2606:4700:4700::1111]/x"),
    ],
)
def test_a_public_address_has_one_spelling(url: str, expected: str) -> None:
    assert parse_address(url).url == expected
    assert parse_address(expected).url == expected
