"""Which class an IP address belongs to, as one table.

Not here: whether a class may be reached (reach) or how names become addresses (dial).
"""

from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressClass(StrEnum):
    """How near an address is to us; everything but `public` must be allowed by name."""

    PUBLIC = "public"
    PRIVATE = "private"  # someone's own network
    HOST = "host"  # this machine, or its link: loopback, link-local, the cloud's metadata service
    NEVER = "never"  # no single machine answers there


# Python's `is_global` differs between patch releases (3.11.9 and 3.12.4 moved ranges), so the table is ours.
# Source: IANA's special-purpose address registries (RFC 6890 and its updates). First match wins.
_NEAR: tuple[tuple[str, AddressClass], ...] = (
    ("0.0.0.0/8", AddressClass.NEVER),  # RFC 1122: "this network"; Linux connects 0.0.0.0 to itself
    ("127.0.0.0/8", AddressClass.HOST),  # RFC 1122: loopback
    ("169.254.0.0/16", AddressClass.HOST),  # RFC 3927: link-local, with 169.254.169.254
    ("10.0.0.0/8", AddressClass.PRIVATE),  # RFC 1918
    ("172.16.0.0/12", AddressClass.PRIVATE),  # RFC 1918
    ("192.168.0.0/16", AddressClass.PRIVATE),  # RFC 1918
    ("100.64.0.0/10", AddressClass.PRIVATE),  # RFC 6598: shared by carriers; 100.100.100.200 is metadata
    ("192.0.0.0/24", AddressClass.PRIVATE),  # RFC 6890: protocol assignments; 192.0.0.192 is metadata
    ("192.0.2.0/24", AddressClass.PRIVATE),  # RFC 5737: documentation
    ("192.88.99.0/24", AddressClass.PRIVATE),  # RFC 7526: the late 6to4 relay
    ("198.18.0.0/15", AddressClass.PRIVATE),  # RFC 2544: benchmarks, and what proxies make up for names
    ("198.51.100.0/24", AddressClass.PRIVATE),  # RFC 5737
    ("203.0.113.0/24", AddressClass.PRIVATE),  # RFC 5737
    ("168.63.129.16/32", AddressClass.HOST),  # Azure's wire server: public by number, the host by meaning
    ("224.0.0.0/4", AddressClass.NEVER),  # RFC 5771: multicast
    ("240.0.0.0/4", AddressClass.NEVER),  # RFC 1112: reserved, and the broadcast address
    ("0.0.0.0/0", AddressClass.PUBLIC),
    ("::1/128", AddressClass.HOST),  # RFC 4291: loopback
    ("::/128", AddressClass.NEVER),  # RFC 4291: unspecified
    ("fe80::/10", AddressClass.HOST),  # RFC 4291: link-local
    ("fc00::/7", AddressClass.PRIVATE),  # RFC 4193: unique local, with fd00:ec2::254
    ("ff00::/8", AddressClass.NEVER),  # RFC 4291: multicast
    ("2001::/23", AddressClass.PRIVATE),  # RFC 2928: Teredo, ORCHID, benchmarks
    ("2001:db8::/32", AddressClass.PRIVATE),  # RFC 3849: documentation
    ("2002::/16", AddressClass.PRIVATE),  # RFC 3056: 6to4 carries any IPv4 address inside
    ("3fff::/20", AddressClass.PRIVATE),  # RFC 9637: documentation
    ("2000::/3", AddressClass.PUBLIC),  # RFC 4291: the only global unicast space handed out
    ("::/0", AddressClass.PRIVATE),  # the rest: site-local, discard, local NAT64, not given out
)
_TABLE: tuple[tuple[Network, AddressClass], ...] = tuple((ip_network(text), near) for text, near in _NEAR)

# Networks whose last 32 bits are an IPv4 address that the packet finally goes to.
_CARRIERS = (
    IPv6Network("::ffff:0:0/96"),  # RFC 4291: IPv4-mapped
    IPv6Network("::ffff:0:0:0/96"),  # RFC 2765: IPv4-translated
    IPv6Network("64:ff9b::/96"),  # RFC 6052: NAT64
)


def classify(address: Address) -> AddressClass:
    """Class of one address; an IPv6 address that carries an IPv4 one counts as that."""
    if isinstance(address, IPv6Address) and any(address in carrier for carrier in _CARRIERS):
        return classify(IPv4Address(int(address) & 0xFFFFFFFF))
    return next(near for network, near in _TABLE if address.version == network.version and address in network)


def read_address(text: str) -> Address | None:
    """The address that `text` spells in the canonical way (no zone, no octal, no short forms), or None."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None
