"""TLS on what a rank serves over TCP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.tokens import Role
from ..links.tls import LinkTls

if TYPE_CHECKING:
    import grpc


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """A rank's certificate, key and authorities; PEM, as in the files when the rank was started.

    `ca` vouches for sidecars that this one dials. `client_ca`: if it is there, it must vouch for whoever dials.
    `roles`: of names in clients' certificates.
    """

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    ca: bytes = field(repr=False)
    client_ca: bytes | None = field(repr=False)
    links: LinkTls = field(repr=False)
    roles: Mapping[str, Role] = field(default_factory=dict)

    def dialling(self) -> grpc.ChannelCredentials:
        """For channels to other sidecars, which are shown this one's certificate if they ask.

        To be called where gRPC may be started: not before ranks are forked.
        """
        import grpc

        return grpc.ssl_channel_credentials(self.ca, self.key, self.certificate)


def serving(current: Callable[[], Tls]) -> grpc.ServerCredentials:
    """For gRPC listeners on TCP: each connection gets the current certificate. Not before ranks are forked."""
    import grpc

    shown = current()

    def configured(tls: Tls) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(tls.key, tls.certificate)], tls.client_ca)

    def changed() -> Any:
        nonlocal shown
        if (tls := current()) is shown:
            # What gRPC has stays.
            return None
        shown = tls
        return configured(tls)

    return grpc.dynamic_ssl_server_credentials(configured(shown), changed, shown.client_ca is not None)
