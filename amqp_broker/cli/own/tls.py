"""`amqp-broker tls`: create an authority, and certificates for a broker and a client."""

from __future__ import annotations

from pathlib import Path

import click

from amqp_broker.server import certificate_authority


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--host", "hosts", multiple=True, help="Further name or address of the broker; repeatable.")
def tls(folder: Path, hosts: tuple[str, ...]) -> None:
    """Create certificates for TLS in the folder DIR; valid ones in it are kept.

    The broker's certificate is for localhost, 127.0.0.1, ::1, this machine's name and every --host; the client's is for
    the user guest.
    """
    files = certificate_authority.certificates(folder.absolute(), hosts)
    click.echo(f"authority:          {files.ca_certificate}")
    click.echo(f"broker:             {files.server_certificate}, {files.server_key}")
    click.echo(f"client:             {files.client_certificate}, {files.client_key}")
    click.echo(
        f"Serve with them:    amqp-broker serve --tls-cert-file {files.server_certificate} "
        f"--tls-key-file {files.server_key} --tls-ca-file {files.ca_certificate} --tls-verify-peer"
    )
