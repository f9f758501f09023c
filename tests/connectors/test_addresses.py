"""Tests of the table of address classes.

Not here: what is done with a class (test_reach).
"""

from ipaddress import ip_address

import pytest

from bot.connectors.addresses import AddressClass, classify

PUBLIC, PRIVATE, HOST, NEVER = AddressClass


# Every address that is not plainly public is of a class that must be allowed by name, or of none at all.
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", PUBLIC),
        ("93.184.216.34", PUBLIC),
        ("172.15.255.255", PUBLIC),
        ("172.32.0.0", PUBLIC),
        ("100.63.255.255", PUBLIC),
        ("100.128.0.0", PUBLIC),
        ("2606:4700::1111", PUBLIC),
        ("::ffff:8.8.8.8", PUBLIC),
        ("64:ff9b::808:808", PUBLIC),
        ("10.0.0.1", PRIVATE),
        ("172.16.0.1", PRIVATE),
        ("172.31.255.255", PRIVATE),
        ("192.168.1.1", PRIVATE),
        ("100.64.0.1", PRIVATE),
        ("100.100.100.200", PRIVATE),
        ("192.0.0.192", PRIVATE),
        ("198.18.0.1", PRIVATE),
        ("203.0.113.7", PRIVATE),
        ("fd00:ec2::254", PRIVATE),
        ("fec0::1", PRIVATE),
        ("2002:7f00:1::1", PRIVATE),
        ("2001:0:7f00:1::", PRIVATE),
        ("2001:db8::1", PRIVATE),
        ("64:ff9b:1::7f00:1", PRIVATE),
        ("::127.0.0.1", PRIVATE),
        ("100::1", PRIVATE),
        ("::ffff:10.0.0.1", PRIVATE),
        ("64:ff9b::a00:1", PRIVATE),
        ("127.0.0.1", HOST),
        ("127.255.255.254", HOST),
        ("169.254.169.254", HOST),
        ("168.63.129.16", HOST),
        ("::1", HOST),
        ("fe80::1", HOST),
        ("::ffff:127.0.0.1", HOST),
        ("::ffff:0:127.0.0.1", HOST),
        ("64:ff9b::7f00:1", HOST),
        ("64:ff9b::a9fe:a9fe", HOST),
        ("0.0.0.0", NEVER),  # noqa: S104 - an address to classify, nothing is bound
        ("0.1.2.3", NEVER),
        ("224.0.0.1", NEVER),
        ("240.0.0.1", NEVER),
        ("255.255.255.255", NEVER),
        ("::", NEVER),
        ("ff02::1", NEVER),
        ("::ffff:0.0.0.0", NEVER),
    ],
)
def test_class_of_address(address: str, expected: AddressClass) -> None:
    assert classify(ip_address(address)) is expected
